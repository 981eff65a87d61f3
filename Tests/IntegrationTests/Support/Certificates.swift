import Foundation
import Testing

/// A certificate authority, another that nobody trusts, and the certificate of a server at 127.0.0.1, all made for one test.
struct Certificates {
  let authority: String
  let otherAuthority: String
  /// The server's key and certificate, each in a file, and both in one.
  let key: String
  let certificate: String
  let keyAndCertificate: String

  static func make(in folder: TestFolder) async throws -> Certificates {
    let script = """
      set -e
      new() {
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $1.key -out $1.pem -subj "/CN=$1" -days 2
      }
      cd "$0"
      new ca
      new other
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.csr -subj /CN=server
      echo "subjectAltName=IP:127.0.0.1" >san
      openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.pem
      cat server.key server.pem >both.pem
      """
    let path = folder.file("")
    let shell = try ChildProcess("/bin/sh", ["-c", script, path], environment: Fanout.environment, in: folder)
    if try await shell.end() != 0 { throw TestFailure(shell.report) }
    return Certificates(
      authority: path + "ca.pem", otherAuthority: path + "other.pem", key: path + "server.key",
      certificate: path + "server.pem", keyAndCertificate: path + "both.pem")
  }
}
