import Glibc
import Synchronization

/// An empty schema that nobody else uses, on the server that tests share or another. It goes, with all that is in it, at the end of the
/// run, or when it is dropped before.
package struct ScratchSchema: Sendable {
  /// The address of a store in it.
  package let address: String
  private let name: String

  /// - Parameter server: its address.
  package init(on server: String? = PostgresServer.address) throws {
    guard let server else { throw ServerFailure(description: "there is no PostgreSQL server") }
    name = "t\(UInt64.random(in: 0...UInt64.max))"
    address = Self.address(of: name, on: server)
    Self.endWithRunner
    Self.inUse.withLock { $0[name] = server }
    try Self.connection(to: server).execute("CREATE SCHEMA \(name)")
  }

  package func drop() {
    guard let server = Self.inUse.withLock({ $0.removeValue(forKey: name) }) else { return }
    Self.drop(name, on: server)
  }

  /// The address of a store in a schema, which need not exist.
  package static func address(of schema: String, on server: String) -> String {
    PostgresTesting.address(server, with: "options=-csearch_path%3D\(schema)")
  }

  private static let shared = SharedConnection(PostgresServer.address ?? "")

  private static func connection(to server: String) -> SharedConnection {
    server == PostgresServer.address ? shared : SharedConnection(server)
  }

  private static func drop(_ name: String, on server: String) {
    // A worker that a failed test has left behind may hold it.
    try? connection(to: server).execute("SET lock_timeout = '5s'; DROP SCHEMA \(name) CASCADE")
  }

  /// The servers of schemas, by name.
  private static let inUse = Mutex<[String: String]>([:])
  private static let endWithRunner: Void = {
    atexit {
      for (name, server) in ScratchSchema.inUse.withLock({ $0 })
      where server != PostgresServer.address || PostgresServer.outlivesRunner { ScratchSchema.drop(name, on: server) }
    }
  }()
}
