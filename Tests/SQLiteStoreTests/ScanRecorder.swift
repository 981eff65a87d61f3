import CSQLite
import Synchronization

/// Records how many rows SQLite steps over in full scans of tables and indexes, by statement, in all connections to the
/// databases of one folder that are opened after it was started.
///
/// It listens in through an extension that SQLite loads into every new connection, so the store needs no opening for tests.
enum ScanRecorder {
  /// Starts to record what happens in `folder`.
  static func start(_ folder: String) {
    recorded.withLock { $0[folder] = [:] }
    let entry: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, OpaquePointer?) -> Int32 = unsafe attach
    // "If X is already registered, this is a harmless no-op" (sqlite3_auto_extension).
    unsafe sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self))
  }

  /// What was recorded in `folder` since the last call.
  static func take(_ folder: String) -> [String: Int] {
    recorded.withLock { recorded in
      defer { recorded[folder] = [:] }
      return recorded[folder] ?? [:]
    }
  }
}

/// By folder, then by statement: the most steps of one run.
private let recorded = Mutex<[String: [String: Int]]>([:])

private func attach(
  _ connection: OpaquePointer?, _ message: UnsafeMutableRawPointer?, _ routines: OpaquePointer?
) -> Int32 {
  unsafe sqlite3_trace_v2(connection, UInt32(SQLITE_TRACE_PROFILE), record, nil)
}

private func record(
  _ event: UInt32, _ context: UnsafeMutableRawPointer?, _ statement: UnsafeMutableRawPointer?,
  _ nanoseconds: UnsafeMutableRawPointer?
) -> Int32 {
  let statement = OpaquePointer(statement)
  let steps = unsafe Int(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1))
  guard steps > 0, let file = unsafe sqlite3_db_filename(sqlite3_db_handle(statement), "main"),
    let sql = unsafe sqlite3_sql(statement)
  else { return 0 }
  let path = unsafe String(cString: file)
  let text = unsafe String(cString: sql)
  recorded.withLock { recorded in
    for folder in Array(recorded.keys) where path.hasPrefix(folder + "/") {
      let most = max(steps, recorded[folder]?[text] ?? 0)
      recorded[folder]?[text] = most
    }
  }
  return 0
}
