import PostgresTesting
import Testing

@Suite("Generated histories and what an independent oracle says of them (SPEC 4, 5)", .crowded)
struct GeneratedHistoryTests {
  @Test("one worker", arguments: Generated.workloads, BrokerKind.available)
  func one(workload: Workload, kind: BrokerKind) async throws {
    try await Scenario.oneWorker(workload, on: kind)
  }

  @Test("two workers at once (SPEC 6)", arguments: Generated.workloads, BrokerKind.available)
  func two(workload: Workload, kind: BrokerKind) async throws {
    try await Scenario.workers(2, workload, on: kind)
  }

  @Test("large fan-outs in slices (SPEC 6)", arguments: Generated.workloads, BrokerKind.available)
  func slices(workload: Workload, kind: BrokerKind) async throws {
    try await Scenario.slices(workload, on: kind)
  }

  @Test("killed at random moments (SPEC 7)", arguments: BrokerKind.available)
  func killed(kind: BrokerKind) async throws {
    try await Scenario.killed(Generated.workloads[1], on: kind, maxInFlight: 3)
  }
}

@Suite("What there is to test on")
struct PresenceTests {
  @Test("a real Kafka", .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func kafka() {}

  @Test("PostgreSQL", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
  func postgres() {}

  @Test("the shared data", .enabled(if: Shared.isPresent, Shared.missing))
  func shared() {}
}
