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

  /// Where a store's tables lie.
  enum Layout: Hashable {
    /// On one PostgreSQL.
    case whole
    /// There, too, but with the keys, the views and the statements for Citus.
    case distributedInNameOnly
    /// On the Citus cluster of `FANOUT_TEST_CITUS`.
    case distributed
  }

  init(settings: StoreSettings = .standard, layout: Layout = .whole) throws {
    site = try Site.take(Site.Kind(settings: settings, layout: layout))
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

  /// Counts the feed rows at or after a horizon that nobody is shown. Citus can join tables on other columns than those by
  /// which they are distributed only when it has gathered them.
  static let leftovers = """
    WITH f AS MATERIALIZED (SELECT owner, at, post FROM feed_row),
      t AS MATERIALIZED (SELECT owner, horizon FROM feed_trim),
      p AS MATERIALIZED (SELECT key, author, at, deleted FROM post),
      e AS MATERIALIZED (SELECT actor, subject FROM edge WHERE kind = 0 AND state < 2)
    SELECT count(*) FROM f LEFT JOIN p ON p.key = f.post
    WHERE f.at >= coalesce((SELECT horizon FROM t WHERE t.owner = f.owner), -1)
      AND (p.key IS NULL OR p.deleted OR p.at IS DISTINCT FROM f.at OR (p.author <> f.owner
        AND NOT EXISTS (SELECT 1 FROM e WHERE e.actor = f.owner AND e.subject = p.author)))
    """
}

/// What stays of a place for the next test.
private final class Site: Sendable {
  let address: String
  let store: PostgresStore
  let connection: SharedConnection
  private let kind: Kind
  private let schema: ScratchSchema

  deinit { schema.drop() }

  struct Kind: Hashable {
    let settings: StoreSettings
    let layout: Place.Layout
  }

  private static let free = Mutex<[Kind: [Site]]>([:])
  /// Each has three to seven connections.
  private static let kept = 20

  private init(_ kind: Kind) throws {
    schema = try kind.layout == .distributed ? ScratchSchema(on: CitusServer.address) : ScratchSchema()
    address = schema.address
    if kind.layout == .distributedInNameOnly { try Connection(address).execute(CitusServer.standIn) }
    if kind.layout != .whole {
      _ = try PostgresStore.migrate(address: address, settings: kind.settings, distributing: true)
    }
    store = try PostgresStore(address: address, access: .readWrite, settings: kind.settings)
    connection = SharedConnection(address)
    self.kind = kind
  }

  static func take(_ kind: Kind) throws -> Site {
    guard let site = free.withLock({ $0[kind]?.popLast() }) else { return try Site(kind) }
    try site.empty()
    return site
  }

  static func giveBack(_ site: Site) {
    free.withLock { free in
      if free.values.reduce(0, { $0 + $1.count }) < kept { free[site.kind, default: []].append(site) }
    }
  }

  func empty() throws {
    // Faster than TRUNCATE, which makes new files; the tables are small.
    try connection.execute(
      "DELETE FROM edge; DELETE FROM post; DELETE FROM seen; DELETE FROM feed_row; DELETE FROM feed_trim")
  }
}
