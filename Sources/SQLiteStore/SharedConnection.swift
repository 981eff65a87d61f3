internal import FanoutStore
private import Synchronization

/// A connection that several threads take turns to use. Once it was discarded, the next use opens the file anew.
final class SharedConnection: Sendable {
  private let open: @Sendable () throws(StoreError) -> Connection
  private let isDiscarded = Atomic(false)
  private let lock = Mutex(())
  // `Mutex<Connection?>` can't lend its value to a closure that isn't Sendable. The lock above is what makes this safe: the
  // connection is reached while it is held only.
  private nonisolated(unsafe) var connection: Connection?

  init(_ connection: sending Connection, open: @escaping @Sendable () throws(StoreError) -> Connection) {
    unsafe self.connection = connection
    self.open = open
  }

  func withConnection<T>(_ body: (Connection) throws(StoreError) -> T) throws(StoreError) -> T {
    try lock.withLock { (_) throws(StoreError) -> T in try body(try take()) }
  }

  /// For a body that calls what may throw anything.
  func lend<T>(to body: (Connection) throws -> T) throws -> T {
    try lock.withLock { _ in try body(try take()) }
  }

  private func take() throws(StoreError) -> Connection {
    closeIfDiscarded()
    if let known = unsafe connection { return known }
    let fresh = try open()
    unsafe connection = fresh
    return fresh
  }

  /// Closes the connection: at once, or if somebody is using it, before its next use.
  func discard() {
    isDiscarded.store(true, ordering: .releasing)
    _ = lock.withLockIfAvailable { _ in closeIfDiscarded() }
  }

  private func closeIfDiscarded() {
    if isDiscarded.exchange(false, ordering: .acquiring) { unsafe connection = nil }
  }
}
