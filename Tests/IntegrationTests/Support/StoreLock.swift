import SQLiteStore
import Synchronization

/// Another process's write lock on a store, for as long as a test wants it.
final class StoreLock: Sendable {
  // Used by one thread at a time: made here, and given up once.
  private nonisolated(unsafe) let database: Connection
  private let isHeld = Mutex(true)

  /// - Throws: when another holds the lock.
  init(_ path: String) throws {
    let database = try Connection(path: path, access: .readWrite)
    try database.execute("BEGIN IMMEDIATE")
    unsafe self.database = database
  }

  deinit { release() }

  func release() {
    isHeld.withLock { isHeld in
      if isHeld { unsafe try? database.execute("ROLLBACK") }
      isHeld = false
    }
  }
}
