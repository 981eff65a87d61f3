internal import PostgresStore

/// A schema of a benchmark's own in the database that `--store` names.
struct BenchSchema {
  /// What `--store` takes to name it.
  let address: String
  /// A connection for what the benchmark itself has to do there.
  let database: Connection

  private static let prefix = "fanout_bench_"

  /// Makes a schema, and drops it after `body`.
  static func with<T>(_ uri: String, _ name: String, _ body: (BenchSchema) throws -> T) throws -> T {
    let name = prefix + name
    let address = uri + (uri.contains("?") ? "&" : "?") + "options=-csearch_path%3D" + name
    let database = try Connection(address)
    // Lasts as long as the connection. So a schema without its lock is one that a benchmark left when it was killed.
    _ = try database.text("SELECT pg_advisory_lock(hashtextextended('\(name)', 0))::text")
    try dropLeftovers(database)
    try database.execute("CREATE SCHEMA \(name); SET synchronous_commit = on")
    defer { _ = try? database.execute("DROP SCHEMA \(name) CASCADE") }
    return try body(BenchSchema(address: address, database: database))
  }

  private static func dropLeftovers(_ database: Connection) throws {
    let names = try database.text(
      """
      SELECT nspname::text FROM pg_namespace WHERE starts_with(nspname::text, '\(prefix)')
        AND pg_has_role(nspowner, 'USAGE') AND pg_try_advisory_lock(hashtextextended(nspname::text, 0))
      """)
    for name in names.split(separator: "\n") {
      note("dropping \(name), which an earlier benchmark left behind")
      try database.execute("DROP SCHEMA \(name) CASCADE")
      _ = try database.text("SELECT pg_advisory_unlock(hashtextextended('\(name)', 0))::text")
    }
  }

  /// What a row of a table takes on the disk, its indexes included.
  func bytesPerRow(of table: String) throws -> Int {
    try database.integer("SELECT pg_total_relation_size('\(table)') / greatest(1, (SELECT count(*) FROM \(table)))")
  }

  /// What the server is and whether its commits reach the disk: no rate means anything without.
  static func describeServer(_ uri: String) throws -> String {
    try Connection(uri).text(
      """
      SELECT format('PostgreSQL %s, fsync=%s, shared_buffers=%s, max_wal_size=%s', current_setting('server_version'),
        current_setting('fsync'), current_setting('shared_buffers'), current_setting('max_wal_size'))
      """)
  }
}
