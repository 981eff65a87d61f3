import CSQLite
import FanoutStoreTesting

/// SQLite's own view of a file, for what a store does not tell.
@safe
final class Database {
  private let handle: OpaquePointer

  init(_ path: String) throws {
    var opened: OpaquePointer?
    guard unsafe sqlite3_open(path, &opened) == SQLITE_OK, let opened = unsafe opened else {
      throw ConformanceFailure("can't open \(path)")
    }
    unsafe handle = opened
  }

  deinit {
    unsafe sqlite3_close_v2(handle)
  }

  func execute(_ sql: String) throws {
    if unsafe sqlite3_exec(handle, sql, nil, nil, nil) != SQLITE_OK {
      throw ConformanceFailure(unsafe String(cString: sqlite3_errmsg(handle)))
    }
  }

  /// The first column of the first row.
  func integer(_ sql: String) throws -> Int {
    var statement: OpaquePointer?
    defer { unsafe sqlite3_finalize(statement) }
    guard unsafe sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK,
      unsafe sqlite3_step(statement) == SQLITE_ROW
    else { throw ConformanceFailure(unsafe String(cString: sqlite3_errmsg(handle))) }
    return unsafe Int(sqlite3_column_int64(statement, 0))
  }
}
