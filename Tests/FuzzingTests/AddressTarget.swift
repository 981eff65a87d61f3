import FanoutStore
import PostgresStore
import fanout

/// Whatever is given as `--store` is taken or refused, and no message shows the password in it.
enum AddressTarget {
  static func check(_ input: [UInt8]) throws {
    let text = String(decoding: input, as: UTF8.self)
    try check(address: text)
    try check(address: "postgres://" + text)

    // One line ends the password, the rest is what follows it.
    let parts = text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    let password = "s3cret" + parts[0]
    let rest = parts.count > 1 ? String(parts[1]) : "localhost/fanout"
    if rest.contains("s3cret") { return }
    for address in ["postgres://ann:\(password)@\(rest)", "postgres://ann@db/fanout?password=\(password)"] {
      try check(address: address)
      let store = try StoreAddress(address)
      for shown in [store.name, store.option] {
        try promise(!shown.contains("s3cret"), "\(shown) shows the password of \(address)")
      }
    }
    try checkMessage("could not translate host name \"\(password)\" to an address", password)
  }

  private static func check(address: String) throws {
    do throws(StoreError) { try Connecting.checkForm(of: address) } catch {
      try promise(error.code == .cannotOpen, "\(error)")
    }
    do {
      let store = try StoreAddress(address)
      // What one process gives to another.
      try promise(!store.option.isEmpty && !store.name.isEmpty, "an address without a name")
      if case .sqlite(let path) = store {
        try promise("sqlite:" + path == store.option, "\(store.option) is another file")
      }
    } catch let error as UsageError {
      try promise(!error.description.isEmpty, "an error without words")
    }
  }

  private static func checkMessage(_ message: String, _ password: String) throws {
    let shown = Connecting.withoutSecrets(message, of: "postgres://ann:\(password)@localhost/fanout")
    try promise(!shown.contains("s3cret"), "\(shown) shows a password")
  }
}
