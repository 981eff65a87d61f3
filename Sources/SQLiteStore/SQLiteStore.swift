public import FanoutStore
public import SocialEvents

/// The store in one SQLite file (SPEC 8, `--store sqlite:PATH`).
///
/// Several workers and readers, in one process or many, may have the same file open: readers never wait, writers take turns.
/// The file must be on a local disk, as SQLite's write-ahead log needs shared memory.
public final class SQLiteStore: Store {
  public enum Access: Sendable {
    case readOnly
    case readWrite
  }

  public let settings: StoreSettings
  private let reader: SharedConnection
  /// Nil when the store was opened for reading only.
  private let writer: SharedConnection?

  /// How long a write waits for another process's before it fails as `.busy`, in milliseconds.
  private static let busyTimeout: Int32 = 20_000

  /// Opens a store. For writing, a file that does not exist is made with the newest schema; one that does must have it.
  /// - Parameters:
  ///   - path: the file.
  ///   - settings: what the store must be set up for; nil takes it as it is.
  /// - Throws: `StoreError` with code `.cannotOpen`, or `.schema` when the file has another schema or other settings.
  public convenience init(path: String, access: Access, settings: StoreSettings?) throws(StoreError) {
    if access == .readWrite { try Self.createIfMissing(path, settings: settings ?? .standard) }
    try self.init(openingExisting: path, access: access, settings: settings)
  }

  private init(openingExisting path: String, access: Access, settings: StoreSettings?) throws(StoreError) {
    let reader = try Self.openReader(path, hasWorked: false)
    let stored = try Self.check(reader, path, settings)
    self.settings = stored
    reader.hasWorked = true
    self.reader = SharedConnection(reader) { () throws(StoreError) in try Self.openReader(path, hasWorked: true) }
    if access == .readOnly {
      writer = nil
      return
    }
    let writer = try Self.openWriter(path, hasWorked: false)
    writer.hasWorked = true
    self.writer = SharedConnection(writer) { () throws(StoreError) in
      let writer = try Self.openWriter(path, hasWorked: true)
      // It may be another file by now.
      _ = try Self.check(writer, path, stored)
      return writer
    }
  }

  private static func openReader(_ path: String, hasWorked: Bool) throws(StoreError) -> sending Connection {
    let reader = try Connection(path: path, access: .readOnly, hasWorked: hasWorked)
    reader.setBusyTimeout(milliseconds: busyTimeout)
    try reader.execute("PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY")
    return reader
  }

  private static func openWriter(_ path: String, hasWorked: Bool) throws(StoreError) -> sending Connection {
    let writer = try Connection(path: path, access: .readWrite, hasWorked: hasWorked)
    try prepareForWriting(writer)
    try writer.execute(FeedWriter.temporaryTables)
    return writer
  }

  /// - Returns: the settings that the store was made for.
  private static func check(
    _ database: Connection, _ path: String, _ settings: StoreSettings?
  ) throws(StoreError) -> StoreSettings {
    let version = try Schema.version(of: database)
    guard version == Schema.newest else {
      throw StoreError(
        .schema,
        "the store \(path) has schema version \(version), this program needs \(Schema.newest). "
          + "Run: fanout migrate --store sqlite:\(path)")
    }
    let stored = try Schema.settings(of: database)
    if let settings, settings != stored {
      throw StoreError(
        .schema,
        "the store \(path) was made for feed limit \(stored.feedLimit), own posts "
          + "\(stored.includesOwnPosts ? "on" : "off"); asked for were \(settings.feedLimit) and "
          + "\(settings.includesOwnPosts ? "on" : "off"). Leave --feed-limit and --own-posts away, or replay into a new store."
      )
    }
    return stored
  }

  /// The write-ahead log may grow to about 64 MB: pages that several batches write go to the database file once.
  ///
  /// FULL makes a commit durable before it returns, even if the machine loses power: the offset that is committed to Kafka
  /// afterwards would not come back.
  private static func prepareForWriting(_ database: Connection) throws(StoreError) {
    database.setBusyTimeout(milliseconds: busyTimeout)
    try database.switchToWriteAheadLog(waitingAtMost: busyTimeout)
    try database.execute(
      """
      PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768;
      PRAGMA wal_autocheckpoint = 16000
      """)
  }

  // MARK: Migration

  /// Makes the file, or brings its schema to the newest version; repeating it does nothing.
  /// - Returns: the schema versions before (0: there was none) and after.
  public static func migrate(
    path: String, settings: StoreSettings = .standard
  ) throws(StoreError) -> (from: Int, to: Int) {
    let database = try Connection(path: path, access: .create)
    database.setBusyTimeout(milliseconds: busyTimeout)
    // Other programs' databases are refused before anything about them is changed.
    _ = try Schema.version(of: database)
    try prepareForWriting(database)
    let (from, to) = try Schema.migrate(database, settings: settings)
    return (Int(from), Int(to))
  }

  private static func createIfMissing(_ path: String, settings: StoreSettings) throws(StoreError) {
    let database = try Connection(path: path, access: .create)
    database.setBusyTimeout(milliseconds: busyTimeout)
    if try Schema.version(of: database) == 0 {
      try prepareForWriting(database)
      _ = try Schema.migrate(database, settings: settings)
    }
  }

  // MARK: Writing

  private func write<T: Sendable>(_ body: (Connection) throws(StoreError) -> T) throws(StoreError) -> T {
    guard let writer else { throw StoreError(.refused, "the store was opened for reading only") }
    do throws(StoreError) {
      return try writer.withConnection(body)
    } catch {
      if error.isOfFile { discardConnections() }
      throw error
    }
  }

  /// A file that fails may do so for good, as after its disk was away: it has to be opened anew. Both connections go, since SQLite
  /// keeps a file open, and uses it again, until the last of a process has gone.
  private func discardConnections() {
    writer?.discard()
    reader.discard()
  }

  public func commitFacts(_ batch: FactBatch) throws(StoreError) -> Int {
    try write { (database) throws(StoreError) in
      try database.write { () throws(StoreError) in try FactWriter(database: database).write(batch) }
    }
  }

  public func deriveViews(of batch: FactBatch, sliceSize: Int) throws(StoreError) -> Derivation {
    try write { (database) throws(StoreError) in
      try FeedWriter(database: database, settings: settings).derive(batch, sliceSize: sliceSize)
    }
  }

  public func derive(_ slice: FanoutSlice, sliceSize: Int) throws(StoreError) -> Int {
    try write { (database) throws(StoreError) in
      try FeedWriter(database: database, settings: settings).derive(slice, sliceSize: sliceSize)
    }
  }

  // MARK: Reading

  /// Each read sees one moment of the store, however many statements it takes.
  private func read<T: Sendable>(_ body: (ViewReader) throws(StoreError) -> T) throws(StoreError) -> T {
    do throws(StoreError) {
      return try reader.withConnection { (database) throws(StoreError) -> T in
        try database.beginReading()
        defer { database.endReading() }
        return try body(ViewReader(database: database, settings: settings))
      }
    } catch {
      if error.isOfFile { discardConnections() }
      throw error
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
    try reader.lend { database in
      try database.beginReading()
      defer { database.endReading() }
      try ViewReader(database: database, settings: settings).export(body)
    }
  }
}
