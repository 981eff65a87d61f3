internal import CSQLite
package import FanoutStore
private import Glibc
internal import SocialEvents

/// An open database. Not Sendable: whoever holds it is the only one to use it.
@safe
package final class Connection {
  private let handle: OpaquePointer
  private let path: String
  private var statements: [String: Statement] = [:]
  /// Whether the file has been open before, so that what is wrong with it now may pass.
  var hasWorked: Bool

  package enum Access {
    case readOnly
    case readWrite
    /// Also makes the file when there is none.
    case create
  }

  /// - Parameter hasWorked: whether the file has been open before, so that what is wrong with it now may pass.
  package init(path: String, access: Access, hasWorked: Bool = false) throws(StoreError) {
    let flags =
      switch access {
      case .readOnly: SQLITE_OPEN_READONLY
      case .readWrite: SQLITE_OPEN_READWRITE
      case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
      }
    Self.configureOnce
    var opened: OpaquePointer?
    // "Whether or not an error occurs when it is opened, resources associated with the database connection handle should be
    // released by passing it to sqlite3_close()" (sqlite3_open).
    var code = unsafe sqlite3_open_v2(path, &opened, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
    guard let database = unsafe opened else {
      throw StoreError(.unavailable, "SQLite has no memory left to open \(path)")
    }
    // A file that may not be written is opened for reading only, and stays so when that is mended.
    if code == SQLITE_OK, access != .readOnly, unsafe sqlite3_db_readonly(database, "main") == 1 {
      code = SQLITE_READONLY
    }
    guard code == SQLITE_OK else {
      let failure = unsafe Failure(
        path: path, code: code, reason: String(cString: sqlite3_errstr(code)),
        systemError: sqlite3_system_errno(database), hasWorked: hasWorked)
      unsafe sqlite3_close_v2(database)
      throw failure.error
    }
    unsafe handle = database
    self.path = path
    self.hasWorked = hasWorked
  }

  deinit {
    // Statements first: a connection with open statements would stay half open.
    statements.removeAll()
    unsafe sqlite3_close_v2(handle)
  }

  /// Counting its own memory would make SQLite lock a mutex for every allocation.
  private static let configureOnce: Void = fanout_sqlite3_disable_memory_statistics()

  /// How long a call waits for another process's lock before it fails as busy.
  func setBusyTimeout(milliseconds: Int32) {
    // SQLite's own timeout looks ever more seldom, up to every 100 ms: beside a worker that writes without a break, another
    // would hardly ever meet the moment between two transactions. So look every millisecond.
    _ = unsafe sqlite3_busy_handler(
      handle,
      { limit, tries in
        if Int(tries) >= Int(bitPattern: limit) { return 0 }
        sqlite3_sleep(1)
        return 1
      }, UnsafeMutableRawPointer(bitPattern: Int(milliseconds)))
  }

  /// Turns on the write-ahead log, which stays on for the file.
  ///
  /// The busy timeout does not cover this: of two that open a new file at once, each holds a lock that the other needs, and
  /// SQLite fails one of them at once rather than let both wait.
  func switchToWriteAheadLog(waitingAtMost milliseconds: Int32) throws(StoreError) {
    let pause: Int32 = 5
    var pauses = milliseconds / pause
    while true {
      do throws(StoreError) {
        return try execute("PRAGMA journal_mode = WAL")
      } catch {
        guard error.code == .busy, pauses > 0 else { throw error }
      }
      pauses -= 1
      sqlite3_sleep(pause)
    }
  }

  /// Runs statements that return nothing.
  package func execute(_ sql: String) throws(StoreError) {
    try check(unsafe sqlite3_exec(handle, sql, nil, nil, nil))
  }

  /// The prepared statement of `sql`, kept for the next time.
  package func statement(_ sql: String) throws(StoreError) -> Statement {
    if let known = statements[sql] { return known }
    var prepared: OpaquePointer?
    try check(unsafe sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil))
    guard let pointer = unsafe prepared else { throw StoreError(.refused, "SQLite prepared no statement") }
    let statement = unsafe Statement(pointer, of: self)
    statements[sql] = statement
    return statement
  }

  /// Rows changed by the last INSERT, UPDATE or DELETE.
  package var changes: Int { unsafe Int(sqlite3_changes64(handle)) }

  /// Runs `body` in one transaction that holds the write lock from its start, so that what it reads stays true until it commits.
  package func write<T>(_ body: () throws(StoreError) -> T) throws(StoreError) -> T {
    try transaction("BEGIN IMMEDIATE", body)
  }

  /// Begins to read one snapshot, until `endReading`.
  func beginReading() throws(StoreError) { try execute("BEGIN") }
  func endReading() { rollBack() }

  private func transaction<T>(_ begin: String, _ body: () throws(StoreError) -> T) throws(StoreError) -> T {
    try execute(begin)
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      rollBack()
      throw error
    }
  }

  private func rollBack() {
    // Some errors have already rolled back; then there is nothing to do.
    if unsafe sqlite3_get_autocommit(handle) == 0 { _ = unsafe sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
  }

  fileprivate func check(_ code: Int32) throws(StoreError) {
    if code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE { throw error(code) }
  }

  private func error(_ code: Int32) -> StoreError {
    let systemError =
      switch code & 0xFF {
      case SQLITE_IOERR, SQLITE_CANTOPEN: unsafe sqlite3_system_errno(handle)
      // SQLite does not keep it for these, and most have none.
      case SQLITE_CORRUPT: [EIO, ENXIO].contains(errno) ? errno : 0
      default: Int32(0)
      }
    return unsafe Failure(
      path: path, code: code, reason: String(cString: sqlite3_errmsg(handle)), systemError: systemError,
      hasWorked: hasWorked
    ).error
  }
}

/// A prepared statement. Parameters count from 1, columns from 0, as in SQLite.
@safe
package final class Statement {
  private let pointer: OpaquePointer
  private unowned let connection: Connection
  /// The bytes of the parameters of this run.
  private let parameters: UnsafeMutableRawPointer
  private var used = 0

  /// Room for any row: a few ids of 128 bytes and an `extra` of 4 KiB. What does not fit is copied by SQLite.
  private static let parameterBytes = 8192

  fileprivate init(_ pointer: OpaquePointer, of connection: Connection) {
    unsafe self.pointer = pointer
    self.connection = connection
    unsafe parameters = .allocate(byteCount: Self.parameterBytes, alignment: 8)
  }

  deinit {
    unsafe sqlite3_finalize(pointer)
    unsafe parameters.deallocate()
  }

  // MARK: Parameters, to be given anew for each run

  package func bind(_ index: Int32, _ value: Int64) {
    _ = unsafe sqlite3_bind_int64(pointer, index, value)
  }
  package func bind(_ index: Int32, _ value: Int) {
    bind(index, Int64(value))
  }
  package func bind(_ index: Int32, _ value: String?) {
    if let value { bind(index, value) } else { _ = unsafe sqlite3_bind_null(pointer, index) }
  }
  package func bind(_ index: Int32, _ value: String) {
    let bytes = value.utf8.span
    unsafe bytes.withUnsafeBytes { text in
      let count = Int32(text.count)
      if let kept = unsafe keep(text) {
        _ = unsafe fanout_sqlite3_bind_text_static(pointer, index, kept.assumingMemoryBound(to: CChar.self), count)
      } else {
        let start = unsafe text.baseAddress?.assumingMemoryBound(to: CChar.self)
        _ = unsafe fanout_sqlite3_bind_text_copied(pointer, index, start, count)
      }
    }
  }
  package func bind(_ index: Int32, _ key: StoreKey) {
    var words = (key.high.bigEndian, key.low.bigEndian)
    unsafe withUnsafeBytes(of: &words) {
      if let kept = unsafe keep($0) {
        _ = unsafe fanout_sqlite3_bind_blob_static(pointer, index, kept, 16)
      } else {
        _ = unsafe fanout_sqlite3_bind_blob_copied(pointer, index, $0.baseAddress, 16)
      }
    }
  }

  /// Copies a parameter's bytes to where they stay until `reset`. SQLite would take memory for each parameter of each run.
  private func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
    guard used + bytes.count <= Self.parameterBytes else { return nil }
    let place = unsafe parameters + used
    if let start = bytes.baseAddress { unsafe place.copyMemory(from: start, byteCount: bytes.count) }
    used += bytes.count
    return UnsafeRawPointer(place)
  }

  // MARK: Running

  /// Runs to the end and makes ready for the next time.
  package func run() throws(StoreError) {
    defer { reset() }
    while try step() {}
  }

  /// Whether there is a row. After the last, or an error, call `reset`.
  package func step() throws(StoreError) -> Bool {
    let code = unsafe sqlite3_step(pointer)
    if code == SQLITE_ROW { return true }
    try connection.check(code)
    return false
  }

  package func reset() {
    // Repeats the error of the last step, which has been reported.
    _ = unsafe sqlite3_reset(pointer)
    if used > 0 { _ = unsafe sqlite3_clear_bindings(pointer) }
    used = 0
  }

  /// Calls `body` for each row.
  func forEachRow(_ body: () throws -> Void) throws {
    defer { reset() }
    while try step() { try body() }
  }

  /// What `row` makes of each row.
  func rows<T>(_ row: () -> T) throws(StoreError) -> [T] {
    defer { reset() }
    var all: [T] = []
    while try step() { all.append(row()) }
    return all
  }

  /// What `row` makes of the first row, or nil if there is none.
  package func first<T>(_ row: () -> T) throws(StoreError) -> T? {
    defer { reset() }
    return try step() ? row() : nil
  }

  // MARK: Columns

  package func integer(_ column: Int32) -> Int64 { unsafe sqlite3_column_int64(pointer, column) }
  func timestamp(_ column: Int32) -> Timestamp { Timestamp(microseconds: integer(column)) }
  func isNull(_ column: Int32) -> Bool { unsafe sqlite3_column_type(pointer, column) == SQLITE_NULL }

  func text(_ column: Int32) -> String {
    guard let bytes = unsafe sqlite3_column_text(pointer, column) else { return "" }
    let count = unsafe Int(sqlite3_column_bytes(pointer, column))
    return unsafe String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
  }

  func key(_ column: Int32) -> StoreKey {
    guard let bytes = unsafe sqlite3_column_blob(pointer, column), unsafe sqlite3_column_bytes(pointer, column) == 16
    else {
      return .lowest
    }
    return unsafe StoreKey(
      high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
      low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
  }

  func user(_ column: Int32) -> UserID { UserID(unchecked: text(column)) }
}
