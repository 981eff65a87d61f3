package import PostgresStore
import Synchronization

/// A connection that several threads may use, one at a time. After a failure the next use connects anew.
package final class SharedConnection: Sendable {
  private let address: String
  private let lock = Mutex(())
  // `Mutex<Connection?>` can't lend its value to a closure that isn't Sendable; the lock above guards it.
  private nonisolated(unsafe) var connection: Connection?

  package init(_ address: String) {
    self.address = PostgresTesting.address(address, with: "application_name=tests")
  }

  package func withConnection<T>(_ body: (Connection) throws -> T) throws -> T {
    try lock.withLock { _ in
      let connection = try unsafe self.connection ?? Connection(address)
      unsafe self.connection = nil
      let result = try body(connection)
      unsafe self.connection = connection
      return result
    }
  }

  package func execute(_ sql: String) throws { try withConnection { try $0.execute(sql) } }

  /// The number that a query returns.
  package func integer(_ sql: String) throws -> Int { try withConnection { try $0.integer(sql) } }
}
