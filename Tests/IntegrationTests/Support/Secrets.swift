import FanoutStore
import Foundation

/// The guises in which a password could get out.
enum Secrets {
  static func forms(of password: String, user: String) -> [String] {
    // What SASL PLAIN sends.
    let message = Array("\0\(user)\0\(password)".utf8)
    return [
      password, hexadecimal(Array(password.utf8)), Data(password.utf8).base64EncodedString(),
      Data(message).base64EncodedString(),
    ]
  }
}
