internal import FanoutStore
private import Synchronization

/// Connections to one address: each thread that asks at the same time gets one of its own. One that is broken, or leads to a
/// server that can't serve, is not used again, so the next call connects anew.
final class ConnectionPool: Sendable {
  private let address: String
  /// What a new connection is set up with.
  private let session: String
  private let isDistributed: Bool
  private let patience: Int
  private let lock = Mutex(())
  // `Mutex<[Connection]>` can't hand out a value that isn't Sendable. The lock above guards the list, and a connection that is
  // not in the list belongs to the one call that took it.
  private nonisolated(unsafe) var idle: [Connection] = []
  private nonisolated(unsafe) var hasConnected: Bool

  /// How many connections are kept for later calls.
  private static let kept = 4

  /// - Parameters:
  ///   - hasConnected: whether the address is known to work, so that a failure is one that may pass.
  ///   - patience: for how long the server may be silent while a statement is under way, in seconds.
  init(address: String, session: String, hasConnected: Bool, isDistributed: Bool, patience: Int) {
    self.address = address
    self.isDistributed = isDistributed
    self.patience = patience
    unsafe self.hasConnected = hasConnected
    self.session = session
  }

  func withConnection<T>(_ body: (Connection) throws(StoreError) -> T) throws(StoreError) -> T {
    let connection = try take()
    defer { giveBack(connection) }
    return try body(connection)
  }

  /// For a body that calls what may throw anything.
  func lend<T>(to body: (Connection) throws -> T) throws -> T {
    let connection = try take()
    defer { giveBack(connection) }
    return try body(connection)
  }

  private func take() throws(StoreError) -> Connection {
    let connection = try takeAny()
    try connection.keepPlansFit()
    return connection
  }

  private func takeAny() throws(StoreError) -> Connection {
    let known = lock.withLock { _ in (connection: unsafe idle.popLast(), isReconnect: unsafe hasConnected) }
    if let connection = known.connection { return connection }
    let connection = try Connection(
      address, reconnecting: known.isReconnect, isDistributed: isDistributed, patience: patience)
    try connection.execute(session)
    lock.withLock { _ in unsafe hasConnected = true }
    return connection
  }

  private func giveBack(_ connection: Connection) {
    lock.withLock { _ in
      // The others will be no better than one that is broken.
      if connection.isLost || connection.isSpent { unsafe idle = [] }
      if connection.isLost || connection.isSpent || !connection.isIdle { return }
      if unsafe idle.count < Self.kept { unsafe idle.append(connection) }
    }
  }
}
