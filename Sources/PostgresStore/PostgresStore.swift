public import FanoutStore
public import SocialEvents

/// The store in PostgreSQL (SPEC 8, `--store postgres://…`), for many workers on many machines.
///
/// The tables lie in the first schema of the connection's `search_path`. Any number of stores may have them open, and any
/// number of threads may share a store: each call takes a connection of its own. Calls fail with `.unavailable` or `.busy`
/// while the server is away or overloaded; the next call connects anew.
public final class PostgresStore: Store {
  public enum Access: Sendable {
    case readOnly
    case readWrite
  }

  public let settings: StoreSettings
  private let readers: ConnectionPool
  /// Nil when the store was opened for reading only.
  private let writers: ConnectionPool?
  private let isDistributed: Bool
  private let hooks: StepHooks

  /// Opens a store. For writing, tables that do not exist are made with the newest schema; ones that do must have it.
  /// - Parameters:
  ///   - address: a `postgres://` URI or a connection string as libpq understands them; what it leaves out is taken from
  ///     libpq's environment variables and files.
  ///   - settings: what the store must be set up for; nil takes it as it is.
  /// - Throws: `StoreError` with code `.cannotOpen`, or `.schema` when the tables have another schema or other settings.
  public convenience init(address: String, access: Access, settings: StoreSettings?) throws(StoreError) {
    try self.init(address: address, access: access, settings: settings, hooks: StepHooks())
  }

  /// - Parameter patience: for how long the server may be silent while a statement is under way, in seconds. It gives up a
  ///   statement itself after a minute; one that does not is frozen or hangs.
  package init(
    address: String, access: Access, settings: StoreSettings?, hooks: StepHooks, patience: Int = 75
  ) throws(StoreError) {
    let database = try Connection(address, patience: patience)
    try database.execute(Self.patience)
    if access == .readWrite, try Schema.version(of: database) == 0 {
      _ = try Schema.migrate(database, settings: settings ?? .standard)
    }
    try Schema.checkPlace(database)
    if try Schema.version(of: database) != Schema.newest { try Schema.waitForMigration(database) }
    let version = try Schema.version(of: database)
    guard version == Schema.newest else {
      throw StoreError(
        .schema,
        "the PostgreSQL store has schema version \(version), this program needs \(Schema.newest). "
          + "Run: fanout migrate, with the same --store")
    }
    let stored = try Schema.settings(of: database)
    isDistributed = try Schema.isDistributed(database)
    if let settings, settings != stored {
      throw StoreError(
        .schema,
        "the PostgreSQL store was made for feed limit \(stored.feedLimit), own posts "
          + "\(stored.includesOwnPosts ? "on" : "off"); asked for were \(settings.feedLimit) and "
          + "\(settings.includesOwnPosts ? "on" : "off"). Leave --feed-limit and --own-posts away, or replay into a new store."
      )
    }
    self.settings = stored
    self.hooks = hooks
    let session = Self.watchingClient + (isDistributed ? Citus.session : Self.session)
    readers = ConnectionPool(
      address: address, session: session + Self.readerSession, hasConnected: true, isDistributed: isDistributed,
      patience: patience)
    writers =
      access == .readWrite
      ? ConnectionPool(
        address: address, session: session + Self.writerSession, hasConnected: true, isDistributed: isDistributed,
        patience: patience) : nil
  }

  /// Nothing may wait for ever for a lock, or for a statement that the server does not get done.
  private static let patience = "SET statement_timeout = '60s'; SET lock_timeout = '15s';"

  /// A statement must not outlive the process that sent it: whoever repeats its work would not know what it still does. The end of a
  /// connection is looked for all the time, and a network that is gone is one after 20 s, before a group gives a silent member's
  /// partitions to others. (PostgreSQL 13 and older can't look.)
  static let watchingClient = """
    SELECT set_config(name, '250ms', false) FROM pg_settings WHERE name = 'client_connection_check_interval';
    SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
    """

  /// Nothing may wait for ever: neither for a statement that the server does not get done, nor for a lock.
  ///
  /// What is checked after a commit is checked by what others have committed, whatever the role's own isolation.
  ///
  /// Statements are written for one plan: nested loops in the order of their text, along indexes, whatever the statistics
  /// happen to say of tables that were empty a minute ago. Plans are made once for a connection.
  private static let session = """
    SET statement_timeout = '60s'; SET lock_timeout = '15s'; SET idle_in_transaction_session_timeout = '60s';
    SET default_transaction_isolation = 'read committed';
    SET jit = off; SET plan_cache_mode = force_generic_plan; SET join_collapse_limit = 1; SET enable_seqscan = off;
    SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    """
  private static let readerSession = "SET default_transaction_read_only = on"
  /// A commit must be durable when it returns, whatever the server's default: the offset that is committed to Kafka afterwards
  /// would not come back.
  ///
  /// Whether transactions may write is left as it is: a server that is set read-only, by hand or because its disk is nearly full, is
  /// waited for.
  private static let writerSession = "SET work_mem = '16MB'; SET synchronous_commit = on"

  // MARK: Migration

  /// Makes the tables, or brings them to the newest version; repeating it does nothing.
  /// - Parameter distributing: whether Citus is to distribute the tables over the nodes of its cluster, too. Whoever has the
  ///   store open meanwhile does not notice, and is refused from then on.
  /// - Returns: the schema versions before (0: there was none) and after.
  public static func migrate(
    address: String, settings: StoreSettings = .standard, distributing: Bool = false
  ) throws(StoreError) -> (from: Int, to: Int) {
    let database = try Connection(address)
    if distributing { try Schema.checkCitus(database) }
    let versions = try Schema.migrate(database, settings: settings)
    if distributing { try Schema.distribute(database) }
    return versions
  }

  /// Makes the tables as an older version of this program did.
  package static func makeTables(address: String, settings: StoreSettings, version: Int) throws(StoreError) {
    _ = try Schema.migrate(try Connection(address), settings: settings, to: min(version, Schema.newest))
  }

  /// The SQL that `migrate` would run, empty if there is nothing to do.
  public static func migrationSQL(
    address: String, settings: StoreSettings = .standard, distributing: Bool = false
  ) throws(StoreError) -> String {
    let database = try Connection(address)
    if distributing { try Schema.checkCitus(database) }
    let sql = try Schema.pending(database, settings: settings)
    return distributing ? try sql + Schema.pendingDistribution(database) : sql
  }

  // MARK: Writing

  private func write<T>(_ body: (Connection) throws(StoreError) -> T) throws(StoreError) -> T {
    guard let writers else { throw StoreError(.refused, "the store was opened for reading only") }
    do throws(StoreError) {
      return try writers.withConnection { (database) throws(StoreError) -> T in try body(database) }
    } catch {
      if error.code == .refused { try checkStillKnown() }
      throw error
    }
  }

  /// - Throws: `.schema` if `migrate` has changed the tables since they were opened. All else is for others to find out.
  private func checkStillKnown() throws(StoreError) {
    let now = try? readers.lend { database in
      (version: try Schema.storedVersion(of: database), isDistributed: try Schema.isDistributed(database))
    }
    guard let now, now.version != Schema.newest || now.isDistributed != isDistributed else { return }
    throw StoreError(.schema, "the tables were migrated while this program had them open. Start it again")
  }

  private func feeds(_ database: Connection) -> FeedWriter {
    FeedWriter(database: database, settings: settings, hooks: hooks)
  }

  public func commitFacts(_ batch: FactBatch) throws(StoreError) -> Int {
    let changes = try write { (database) throws(StoreError) in try FactWriter(database: database).write(batch) }
    hooks.reached?(.factsCommitted)
    return changes
  }

  public func deriveViews(of batch: FactBatch, sliceSize: Int) throws(StoreError) -> Derivation {
    try write { (database) throws(StoreError) in try feeds(database).derive(batch, sliceSize: sliceSize) }
  }

  public func derive(_ slice: FanoutSlice, sliceSize: Int) throws(StoreError) -> Int {
    try write { (database) throws(StoreError) in try feeds(database).derive(slice, sliceSize: sliceSize) }
  }

  // MARK: Reading

  private func read<T>(_ body: (ViewReader) throws(StoreError) -> T) throws(StoreError) -> T {
    try readers.withConnection { (database) throws(StoreError) -> T in
      try body(ViewReader(database: database, settings: settings))
    }
  }

  public func relation(
    _ relation: Relation, of subject: Subject, after: Subject?, limit: Int
  ) throws(StoreError) -> [Subject] {
    try read { (views) throws(StoreError) in try views.relation(relation, of: subject, after: after, limit: limit) }
  }

  public func count(_ relation: Relation, of subject: Subject) throws(StoreError) -> Int {
    try read { (views) throws(StoreError) in try views.count(relation, of: subject) }
  }

  public func feed(of user: UserID, after: FeedItem?, limit: Int) throws(StoreError) -> [FeedItem] {
    try read { (views) throws(StoreError) in try views.feed(of: user, after: after, limit: limit) }
  }

  public func feedback(of user: UserID, after: FeedbackPosition?, limit: Int) throws(StoreError) -> [FeedbackEntry] {
    try read { (views) throws(StoreError) in try views.feedback(of: user, after: after, limit: limit) }
  }

  public func unreadCount(of user: UserID) throws(StoreError) -> Int {
    try read { (views) throws(StoreError) in try views.unreadCount(of: user) }
  }

  public func export(_ body: (ViewRow) throws -> Void) throws {
    try readers.lend { database in
      try ViewExport(database: database, settings: settings).run(body)
    }
  }
}
