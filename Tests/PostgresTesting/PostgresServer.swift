import Foundation
package import Testing

/// The PostgreSQL that tests share: the one of `FANOUT_TEST_POSTGRES`, which must take 500 connections, or one that is started
/// once for the whole run.
package enum PostgresServer {
  /// Its address as a URI, nil if there is no server and none can be started.
  package static var address: String? { given ?? own?.address }

  package static var isPresent: Bool { address != nil }
  package static let missing: Comment =
    "SKIPPED: no PostgreSQL; install postgresql-15, or give the address of a server as FANOUT_TEST_POSTGRES"

  private static let given = ProcessInfo.processInfo.environment["FANOUT_TEST_POSTGRES"].flatMap {
    $0.isEmpty ? nil : $0
  }
  private static let own: OwnPostgres? = {
    guard OwnPostgres.isInstalled else { return nil }
    do {
      return try OwnPostgres()
    } catch {
      print("can't start PostgreSQL: \(error)")
      return nil
    }
  }()
  /// Whether what tests leave there stays there.
  static var outlivesRunner: Bool { given != nil }
}

/// Why there is no server.
package struct ServerFailure: Error, CustomStringConvertible {
  package let description: String
}

/// A server's address with one more of libpq's parameters, as in `application_name=ann`.
package func address(_ address: String, with parameter: String) -> String {
  address + (address.contains("?") ? "&" : "?") + parameter
}
