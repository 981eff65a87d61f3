import Glibc
import Synchronization

/// An empty schema that nobody else uses, on the server that tests share. It goes, with all that is in it, at the end of the
/// run, or when it is dropped before.
package struct ScratchSchema: Sendable {
  /// The address of a store in it.
  package let address: String
  private let name: String

  package init() throws {
    guard let server = PostgresServer.address else { throw ServerFailure(description: "there is no PostgreSQL server") }
    name = "t\(UInt64.random(in: 0...UInt64.max))"
    address = Self.address(of: name, on: server)
    Self.endWithRunner
    Self.inUse.withLock { _ = $0.insert(name) }
    try Self.server.execute("CREATE SCHEMA \(name)")
  }

  package func drop() {
    Self.inUse.withLock { _ = $0.remove(name) }
    Self.drop(name)
  }

  /// The address of a store in a schema, which need not exist.
  package static func address(of schema: String, on server: String) -> String {
    PostgresTesting.address(server, with: "options=-csearch_path%3D\(schema)")
  }

  private static let server = SharedConnection(PostgresServer.address ?? "")

  private static func drop(_ name: String) {
    // A worker that a failed test has left behind may hold it.
    try? server.execute("SET lock_timeout = '5s'; DROP SCHEMA \(name) CASCADE")
  }

  private static let inUse = Mutex<Set<String>>([])
  private static let endWithRunner: Void = {
    if PostgresServer.outlivesRunner { atexit { ScratchSchema.inUse.withLock { $0.forEach(ScratchSchema.drop) } } }
  }()
}
