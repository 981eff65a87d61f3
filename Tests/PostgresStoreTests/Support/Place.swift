import FanoutStore
import FanoutStoreTesting
import PostgresStore
import Synchronization

/// A schema for one store. Schemas are used again by later tests, as making their tables takes longer than most tests.
final class Place: Sendable {
  let address: String
  private let name: String
  private let lock = Mutex(())
  // `Mutex<Connection>` can't lend its value to a closure that isn't Sendable; the lock above guards it.
  private nonisolated(unsafe) let connection: Connection
  private static let free = Mutex<[String]>([])
  private static let count = Atomic(0)
  private static let run = UInt32.random(in: 0...UInt32.max)

  /// A schema with the tables of an empty store.
  init(settings: StoreSettings = .standard) throws {
    let known = Self.free.withLock { $0.popLast() }
    let name = known ?? "t\(Self.run)_\(Self.count.add(1, ordering: .relaxed).newValue)"
    self.name = name
    address = try Self.address(name)
    unsafe connection = try Connection(address)
    if known == nil {
      try Connection(try Self.server()).execute("CREATE SCHEMA \(name)")
      _ = try PostgresStore.migrate(address: address, settings: settings)
    } else {
      try empty(settings)
    }
  }

  /// Makes the store an empty one with these settings.
  func empty(_ settings: StoreSettings) throws {
    // Faster than TRUNCATE, which makes new files; the tables are small.
    try execute(
      """
      DELETE FROM edge; DELETE FROM post; DELETE FROM seen; DELETE FROM feed; DELETE FROM feed_trim;
      UPDATE setting SET value = \(settings.feedLimit) WHERE name = 'feed_limit';
      UPDATE setting SET value = \(settings.includesOwnPosts ? 1 : 0) WHERE name = 'own_posts';
      """)
  }

  deinit {
    Self.free.withLock { $0.append(name) }
  }

  static func server() throws -> String {
    guard let address = PostgresServer.address else { throw ConformanceFailure("there is no PostgreSQL server") }
    return address
  }

  /// The server's address with a schema of its own.
  static func address(_ schema: String) throws -> String {
    let server = try server()
    return server + (server.contains("?") ? "&" : "?") + "options=-csearch_path%3D\(schema)"
  }

  func open(
    _ access: PostgresStore.Access = .readWrite, settings: StoreSettings? = nil, hooks: StepHooks = StepHooks()
  ) throws -> PostgresStore {
    try PostgresStore(address: address, access: access, settings: settings, hooks: hooks)
  }

  func execute(_ sql: String) throws { try lock.withLock { _ in try unsafe connection.execute(sql) } }

  /// Counts the feed rows at or after a horizon that nobody is shown.
  static let leftovers = """
    SELECT count(*) FROM feed f LEFT JOIN post p ON p.key = f.post
    WHERE f.at >= coalesce((SELECT horizon FROM feed_trim t WHERE t.owner = f.owner), -1)
      AND (p.key IS NULL OR p.deleted OR p.at IS DISTINCT FROM f.at OR (p.author <> f.owner
        AND NOT EXISTS (SELECT 1 FROM edge e WHERE e.kind = 0 AND e.actor = f.owner AND e.subject = p.author
          AND e.state < 2)))
    """

  /// The number that a query returns.
  func integer(_ sql: String) throws -> Int {
    try lock.withLock { _ in try unsafe connection.integer(sql) }
  }

  /// How the server would run a query, with its own settings.
  func explain(_ sql: String) throws -> String {
    try lock.withLock { _ in try unsafe connection.text("EXPLAIN \(sql)") }
  }
}
