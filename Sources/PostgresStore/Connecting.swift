internal import CPostgres
package import FanoutStore
private import Glibc

/// How connections are made, and what it means when that fails.
package enum Connecting {
  /// Of two values for one parameter the last holds: what stands before `dbname` is a default that the address can change.
  private static func parameters(_ address: String) -> [(name: String, value: String)] {
    [
      ("connect_timeout", "10"), ("keepalives_idle", "30"), ("tcp_user_timeout", "30000"), ("dbname", address),
      ("client_encoding", "UTF8"), ("fallback_application_name", "fanout"),
    ]
  }

  /// - Returns: the new connection, in whatever state; nil if there is no memory for one.
  @unsafe static func open(_ address: String) -> OpaquePointer? {
    unsafe withLists(of: parameters(address)) { unsafe PQconnectdbParams($0, $1, 1) } ?? nil
  }

  /// libpq's own message about an address that it can't parse may quote a part of it, and that part may be the password.
  package static func checkForm(of address: String) throws(StoreError) {
    var message: UnsafeMutablePointer<CChar>?
    guard let options = unsafe PQconninfoParse(address, &message) else {
      unsafe PQfreemem(message)
      throw StoreError(
        .cannotOpen,
        "the address of the PostgreSQL store has a form that libpq does not understand. It should look like "
          + "postgres://user@host:5432/database, with special characters in its parts percent-encoded.")
    }
    unsafe PQconninfoFree(options)
  }

  /// libpq's message about a connection that it could not make, without what may be the password.
  ///
  /// A password with characters that should have been percent-encoded is read as a host, a port or a parameter, and quoted
  /// as such.
  package static func withoutSecrets(_ message: String, of address: String) -> String {
    // By scalars, as libpq takes it apart by bytes: "@" and a combining character after it are one `Character`.
    let address = Array(address.unicodeScalars)
    let message = Array(message.unicodeScalars)
    let secrets = secrets(in: address)
    var isHidden = [Bool](repeating: false, count: message.count)
    func hide(_ range: Range<Int>) { for index in range { isHidden[index] = true } }
    // What libpq quotes may be a part of a secret, with what stands before or after it.
    for text in message.indices.split(whereSeparator: { message[$0] == "\"" }) {
      let places = address.ranges(of: message[text.startIndex..<text.endIndex])
      if places.contains(where: { place in secrets.contains { $0.overlaps(place) } }) { hide(text) }
    }
    for secret in secrets.map({ address[$0] }) {
      // Shorter ones are in every message.
      for piece in [secret] + secret.split(whereSeparator: { "@/?:&=#[],' ".unicodeScalars.contains($0) })
      where piece.count > 2 {
        for place in message.ranges(of: piece) { hide(place) }
      }
    }
    var text = String.UnicodeScalarView()
    for (index, scalar) in message.enumerated() {
      if !isHidden[index] {
        text.append(scalar)
      } else if index == 0 || !isHidden[index - 1] {
        text.append("…")
      }
    }
    return String(text)
  }

  /// Where a password may stand in an address.
  private static func secrets(in address: [Unicode.Scalar]) -> [Range<Int>] {
    var secrets: [Range<Int>] = []
    if let scheme = address.firstRange(of: Array("://".unicodeScalars)) {
      let rest = address[scheme.upperBound...]
      if let at = rest.lastIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") {
        secrets.append(colon + 1..<at)
      }
    }
    let password = Array("password".unicodeScalars)
    for parameter in address.split(whereSeparator: { "?& ".unicodeScalars.contains($0) }) {
      let parts = parameter.split(separator: "=", maxSplits: 1)
      if parts.count == 2, parts[0].suffix(password.count).elementsEqual(password) { secrets.append(parts[1].indices) }
    }
    return secrets
  }

  /// Whether what kept a connection from being made may pass by itself: a server that is away, starts or has no room, and not
  /// one that knows no such user or database.
  ///
  /// libpq keeps the SQLSTATE of such a failure to itself, and tells it only in the message of a further try.
  @unsafe static func mayPass(_ connection: OpaquePointer, _ address: String) -> Bool {
    // Whether it is there at all is asked with less patience.
    let asked = parameters(address) + [("connect_timeout", "3")]
    let message = unsafe String(cString: PQerrorMessage(connection))
    // To a ping, a server that is not trusted is one that is away.
    if isRefusal(message) { return false }
    // Servers that are not what `target_session_attrs` asks for: a standby that is not the primary yet, say.
    if ["session is ", "in hot standby mode"].contains(where: message.contains) { return true }
    switch unsafe withLists(of: asked, { unsafe PQpingParams($0, $1, 1) }) {
    case PQPING_REJECT, PQPING_NO_RESPONSE, nil: return true
    case PQPING_NO_ATTEMPT: return false
    default: break
    }
    _ = unsafe PQsetErrorVerbosity(connection, PQERRORS_SQLSTATE)
    unsafe PQreset(connection)
    if unsafe PQstatus(connection) == CONNECTION_OK { return true }
    let answer = unsafe String(cString: PQerrorMessage(connection))
    // Without one, libpq itself gave up. The network may have broken again meanwhile, or this side refuses the server.
    guard let state = sqlState(in: answer) else { return !isRefusal(answer) }
    return Failure.code(of: state) == .unavailable
  }

  /// Whether libpq itself has refused a server: as it does not trust it, or has nothing to be trusted for. All else that libpq
  /// says on its own is about a network or a server that fails, in too many words to know them all.
  private static func isRefusal(_ message: String) -> Bool {
    // Hosts and the like are quoted, and may be called anything.
    let words = message.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
      .filter { $0.offset.isMultiple(of: 2) }.map(\.element).joined()
    return [
      "certificate", "unknown ca", "private key", "protocol version", "does not support SSL", "invalid response",
      "password", "authentication", "SCRAM", "channel binding",
    ].contains(where: words.contains)
  }

  /// The SQLSTATE that a message of verbosity `PQERRORS_SQLSTATE` ends with, as in "FATAL:  28P01".
  static func sqlState(in message: String) -> String? {
    guard let word = message.split(whereSeparator: \.isWhitespace).last, word.utf8.count == 5,
      word.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) })
    else { return nil }
    return String(word)
  }

  /// Lends names and values as lists that end with nil.
  private static func withLists<T>(
    of parameters: [(name: String, value: String)],
    _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> T
  ) -> T? {
    unsafe withCStrings(parameters.map(\.name)) { names in
      unsafe withCStrings(parameters.map(\.value)) { values in unsafe body(names, values) }
    }.flatMap(\.self)
  }

  private static func withCStrings<T>(
    _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> T
  ) -> T? {
    var copies: [UnsafePointer<CChar>?] = unsafe strings.map { unsafe UnsafePointer(strdup($0)) }
    unsafe copies.append(nil)
    defer { for index in unsafe copies.indices { unsafe free(UnsafeMutablePointer(mutating: copies[index])) } }
    return unsafe copies.withUnsafeBufferPointer { buffer in unsafe buffer.baseAddress.map { unsafe body($0) } }
  }
}
