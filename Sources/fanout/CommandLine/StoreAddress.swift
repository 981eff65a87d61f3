internal import FanoutStore
internal import PostgresStore
internal import SQLiteStore

/// What `--store` names.
package enum StoreAddress {
  /// The path of a SQLite file.
  case sqlite(path: String)
  /// A `postgres://` or `postgresql://` URI.
  case postgres(uri: String)

  enum Access {
    case readOnly, readWrite
  }

  package init(_ text: String) throws {
    let scheme = "sqlite:"
    if text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") {
      self = .postgres(uri: text)
    } else if text.hasPrefix(scheme), text.utf8.count > scheme.utf8.count {
      self = .sqlite(path: String(text.dropFirst(scheme.count)))
    } else {
      // What is meant for a server may hold a password.
      let isSecret = text.unicodeScalars.contains("@") || text.contains("password")
      let shown = isSecret ? "" : ", not \"\(text)\""
      throw UsageError("--store must be sqlite:PATH or postgres://USER@HOST/DATABASE\(shown)")
    }
  }

  /// How many connections that write at once are worth having in one process. SQLite lets one write at a time.
  var usualWriters: Int {
    switch self {
    case .sqlite: 1
    case .postgres: 2
    }
  }

  func open(_ access: Access, settings: StoreSettings?) throws -> any Store {
    switch self {
    case .sqlite(let path):
      try SQLiteStore(path: path, access: access == .readOnly ? .readOnly : .readWrite, settings: settings)
    case .postgres(let uri):
      try PostgresStore(address: uri, access: access == .readOnly ? .readOnly : .readWrite, settings: settings)
    }
  }

  /// - Returns: the schema versions before (0: there was none) and after.
  func migrate(settings: StoreSettings, distributing: Bool) throws -> (from: Int, to: Int) {
    switch self {
    case .sqlite where distributing: throw UsageError("--distribute is for PostgreSQL with Citus")
    case .sqlite(let path): try SQLiteStore.migrate(path: path, settings: settings)
    case .postgres(let uri): try PostgresStore.migrate(address: uri, settings: settings, distributing: distributing)
    }
  }

  /// The SQL that `migrate` would run.
  func migrationSQL(settings: StoreSettings, distributing: Bool) throws -> String {
    switch self {
    case .sqlite: throw UsageError("--dry-run shows SQL for PostgreSQL only; a SQLite file can be copied and tried on")
    case .postgres(let uri):
      try PostgresStore.migrationSQL(address: uri, settings: settings, distributing: distributing)
    }
  }

  /// What `--store` takes to name it once more; of an address with a password only as much as is no secret.
  package var option: String {
    switch self {
    case .sqlite(let path): "sqlite:\(path)"
    case .postgres(let uri): hasPassword ? name : uri
    }
  }

  // By scalars, as libpq takes it apart by bytes: "@" and a combining character after it are one `Character`.

  /// Whether the address seems to hold a password.
  var hasPassword: Bool {
    guard case .postgres(let uri) = self else { return false }
    let scalars = uri.unicodeScalars
    let user = scalars.drop { $0 != "/" }.prefix { $0 != "@" }
    return scalars.firstRange(of: "password=".unicodeScalars) != nil || scalars.contains("@") && user.contains(":")
  }

  /// How messages call the store: a path, or the server and database without user, password and parameters.
  package var name: String {
    switch self {
    case .sqlite(let path): return path
    case .postgres(let uri):
      let scalars = uri.unicodeScalars
      // The last one, as a password may hold what should have been percent-encoded.
      guard let at = scalars.lastIndex(of: "@") else { return String(scalars.prefix { $0 != "?" }) }
      // So may one among the parameters; then it can't be told where the server's name is.
      if scalars[..<at].firstRange(of: "password=".unicodeScalars) != nil { return "postgres://…" }
      return "postgres://" + String(scalars[scalars.index(after: at)...].prefix { $0 != "?" })
    }
  }
}
