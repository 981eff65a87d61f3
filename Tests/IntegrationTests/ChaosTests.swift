import Foundation
import PostgresTesting
import Testing

@Suite(
  "Chaos (SPEC 7)", .crowded, .serialized, .enabled(if: Shared.isPresent, Shared.missing),
  .enabled(if: OwnPostgres.isInstalled, OwnPostgres.missing))
struct ChaosTests {
  private static func number(_ variable: String) -> UInt64? {
    ProcessInfo.processInfo.environment[variable].flatMap { UInt64($0) }
  }
  /// `FANOUT_TEST_CHAOS_SEED` repeats a run, as far as chance lets it.
  private static let firstSeed = number("FANOUT_TEST_CHAOS_SEED") ?? UInt64.random(in: 0...UInt64.max)
  /// `FANOUT_TEST_CHAOS_MINUTES` goes on with further seeds for so long.
  private static let minutes = number("FANOUT_TEST_CHAOS_MINUTES") ?? 0

  @Test(
    "kill -9, sleep, restarts, cut, slow and silent connections under load: in the end the views are as if nothing had been",
    arguments: StoreKind.all)
  func run(on store: StoreKind) async throws {
    let end = ContinuousClock.now + .seconds(Double(Self.minutes) * 60 / Double(StoreKind.all.count))
    var seed = Self.firstSeed
    repeat {
      try await Chaos.run(on: store, seed: seed)
      seed &+= 1
    } while ContinuousClock.now < end
  }
}
