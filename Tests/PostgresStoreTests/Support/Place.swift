import FanoutStore
import FanoutStoreTesting
import PostgresStore
import PostgresTesting
import Synchronization

/// A schema with an empty store. Schemas and their connections are used again by later tests with the same settings, as making
/// tables, connecting and preparing statements takes longer than most tests.
final class Place: Sendable {
  let address: String
  /// Open for writing, without hooks. Each thread that writes at the same time has a connection of its own.
  let store: PostgresStore
  private let site: Site

  init(settings: StoreSettings = .standard) throws {
    site = try Site.take(settings)
    address = site.address
    store = site.store
  }

  deinit {
    Site.giveBack(site)
  }

  /// Another store on the same tables.
  func open(_ access: PostgresStore.Access = .readWrite, hooks: StepHooks = StepHooks()) throws -> PostgresStore {
    try PostgresStore(address: address, access: access, settings: nil, hooks: hooks)
  }

  func empty() throws { try site.empty() }

  func execute(_ sql: String) throws { try site.connection.execute(sql) }

  /// The number that a query returns.
  func integer(_ sql: String) throws -> Int { try site.connection.integer(sql) }

  /// How the server would run a query, with its own settings.
  func explain(_ sql: String) throws -> String { try site.connection.withConnection { try $0.text("EXPLAIN \(sql)") } }

  /// Counts the feed rows at or after a horizon that nobody is shown.
  static let leftovers = """
    SELECT count(*) FROM feed_row f LEFT JOIN post p ON p.key = f.post
    WHERE f.at >= coalesce((SELECT horizon FROM feed_trim t WHERE t.owner = f.owner), -1)
      AND (p.key IS NULL OR p.deleted OR p.at IS DISTINCT FROM f.at OR (p.author <> f.owner
        AND NOT EXISTS (SELECT 1 FROM edge e WHERE e.kind = 0 AND e.actor = f.owner AND e.subject = p.author
          AND e.state < 2)))
    """
}

/// What stays of a place for the next test.
private final class Site: Sendable {
  let address: String
  let store: PostgresStore
  let connection: SharedConnection
  private let settings: StoreSettings
  private let schema: ScratchSchema

  deinit { schema.drop() }

  private static let free = Mutex<[StoreSettings: [Site]]>([:])
  /// Each has three to seven connections.
  private static let kept = 20

  private init(settings: StoreSettings) throws {
    schema = try ScratchSchema()
    address = schema.address
    store = try PostgresStore(address: address, access: .readWrite, settings: settings)
    connection = SharedConnection(address)
    self.settings = settings
  }

  static func take(_ settings: StoreSettings) throws -> Site {
    guard let site = free.withLock({ $0[settings]?.popLast() }) else { return try Site(settings: settings) }
    try site.empty()
    return site
  }

  static func giveBack(_ site: Site) {
    free.withLock { free in
      if free.values.reduce(0, { $0 + $1.count }) < kept { free[site.settings, default: []].append(site) }
    }
  }

  func empty() throws {
    // Faster than TRUNCATE, which makes new files; the tables are small.
    try connection.execute(
      "DELETE FROM edge; DELETE FROM post; DELETE FROM seen; DELETE FROM feed_row; DELETE FROM feed_trim")
  }
}
