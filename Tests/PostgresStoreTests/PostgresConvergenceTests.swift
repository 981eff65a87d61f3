import FanoutStore
import FanoutStoreTesting
import Foundation
import PostgresStore
import PostgresTesting
import Testing

/// The histories of ConvergenceTests, on PostgreSQL.
@Suite("Convergence on PostgreSQL", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PostgresConvergenceTests {
  static let chunks = 16

  @Test("PostgreSQL converges", arguments: 0..<chunks)
  func converges(chunk: Int) throws {
    Self.check(Self.seeds.filter { $0 % UInt64(Self.chunks) == UInt64(chunk) }, layout: .whole)
  }

  static func check(_ seeds: [UInt64], layout: Place.Layout) {
    for seed in seeds {
      do {
        var place: Place?
        try HistoryRunner.check(seed: seed) { settings in
          let new = try Place(settings: settings, layout: layout)
          place = new
          return new.store
        }
        if let place { #expect(try place.integer(Place.leftovers) == 0, "FANOUT_SEED=\(seed)") }
      } catch {
        Issue.record("\(error)\nagain: FANOUT_SEED=\(seed) swift test -c release --filter PostgresStoreTests")
      }
    }
  }

  /// `FANOUT_HISTORIES` of them (2,000), or the one of `FANOUT_SEED`.
  static let seeds: Range<UInt64> = {
    let environment = ProcessInfo.processInfo.environment
    if let seed = environment["FANOUT_SEED"].flatMap(UInt64.init) { return seed..<seed + 1 }
    return 1..<1 + (environment["FANOUT_HISTORIES"].flatMap(UInt64.init) ?? 2000)
  }()
}
