import Testing

@Suite("Real histories and their published digests (SPEC 9)", .crowded, .enabled(if: Shared.isPresent, Shared.missing))
struct HiggsTests {
  @Test("one worker", arguments: [Higgs.small, Higgs.smallFeeds], BrokerKind.available)
  func small(workload: Workload, kind: BrokerKind) async throws {
    try await Scenario.oneWorker(workload, on: kind)
  }

  @Test("one worker, events out of order and repeated (SPEC 4)", arguments: BrokerKind.available)
  func shuffled(kind: BrokerKind) async throws {
    try await Scenario.oneWorker(Higgs.shuffled, on: kind)
  }

  @Test("two workers at once (SPEC 6)", arguments: [Higgs.small, Higgs.smallFeeds], BrokerKind.available)
  func twoWorkers(workload: Workload, kind: BrokerKind) async throws {
    try await Scenario.workers(2, workload, on: kind)
  }

  @Test("large fan-outs in slices (SPEC 6)", arguments: BrokerKind.available)
  func slices(kind: BrokerKind) async throws {
    try await Scenario.slices(Higgs.small, on: kind)
  }

  @Test("killed at random moments (SPEC 7)", arguments: BrokerKind.available)
  func killed(kind: BrokerKind) async throws {
    try await Scenario.killed(Higgs.small, on: kind, maxInFlight: 3)
  }
}

@Suite(
  "Larger real histories and their published digests (SPEC 9), on a real Kafka", .crowded, .serialized,
  .enabled(if: Shared.isPresent, Shared.missing), .enabled(if: RealKafka.isPresent, RealKafka.missing))
struct LargeHiggsTests {
  @Test("one worker", arguments: [Higgs.large, Higgs.largeSmallFeeds, Higgs.largeShuffled])
  func one(workload: Workload) async throws {
    try await Scenario.oneWorker(workload, on: .kafka)
  }

  @Test("two workers at once (SPEC 6)")
  func two() async throws {
    try await Scenario.workers(2, Higgs.large, on: .kafka)
  }

  @Test("large fan-outs in slices (SPEC 6)", arguments: [Higgs.large, Higgs.largeSmallFeeds])
  func slices(workload: Workload) async throws {
    try await Scenario.slices(workload, on: .kafka)
  }

  @Test("killed at random moments (SPEC 7)")
  func killed() async throws {
    try await Scenario.killed(Higgs.large, on: .kafka, maxInFlight: 300)
  }
}
