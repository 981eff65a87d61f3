internal import FanoutStore
internal import PostgresStore
internal import SQLiteStore

/// What `--store` names.
enum StoreAddress {
  /// The path of a SQLite file.
  case sqlite(path: String)
  /// A `postgres://` or `postgresql://` URI.
  case postgres(uri: String)

  enum Access {
    case readOnly, readWrite
  }

  init(_ text: String) throws {
    let scheme = "sqlite:"
    if text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") {
      self = .postgres(uri: text)
    } else if text.hasPrefix(scheme), text.utf8.count > scheme.utf8.count {
      self = .sqlite(path: String(text.dropFirst(scheme.count)))
    } else {
      // What is meant for a server may hold a password.
      let shown = text.contains("@") || text.contains("password") ? "" : ", not \"\(text)\""
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
  var option: String {
    switch self {
    case .sqlite(let path): "sqlite:\(path)"
    case .postgres(let uri): hasPassword ? name : uri
    }
  }

  /// Whether the address seems to hold a password.
  var hasPassword: Bool {
    guard case .postgres(let uri) = self else { return false }
    let user = uri.drop { $0 != "/" }.prefix { $0 != "@" }
    return uri.contains("password=") || uri.contains("@") && user.contains(":")
  }

  /// How messages call the store: a path, or the server and database without user, password and parameters.
  var name: String {
    switch self {
    case .sqlite(let path): return path
    case .postgres(let uri):
      // The last one, as a password may hold what should have been percent-encoded.
      guard let at = uri.lastIndex(of: "@") else { return String(uri.prefix { $0 != "?" }) }
      return "postgres://" + uri[uri.index(after: at)...].prefix { $0 != "?" }
    }
  }
}
