import PostgresStore
import PostgresTesting
import Testing

@Suite(
  "Real histories and their published digests (SPEC 9), on PostgreSQL and a real Kafka", .crowded,
  .enabled(if: Shared.isPresent, Shared.missing), .enabled(if: RealKafka.isPresent, RealKafka.missing),
  .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PostgresTests {
  @Test(
    "one worker",
    arguments: [Higgs.small, Higgs.smallFeeds, Higgs.shuffled, Higgs.large, Higgs.largeSmallFeeds, Higgs.largeShuffled])
  func one(workload: Workload) async throws {
    try await Scenario.oneWorker(workload, on: .kafka, store: .postgres)
  }

  @Test("two workers at once (SPEC 6)", arguments: [Higgs.small, Higgs.smallFeeds, Higgs.largeSmallFeeds])
  func two(workload: Workload) async throws {
    try await Scenario.workers(2, workload, on: .kafka, store: .postgres)
  }

  @Test(
    "four workers at once (SPEC 6)",
    arguments: [Higgs.small, Higgs.smallFeeds, Higgs.large, Higgs.largeSmallFeeds, Higgs.largeShuffled])
  func four(workload: Workload) async throws {
    try await Scenario.workers(4, workload, on: .kafka, store: .postgres)
  }

  @Test("large fan-outs in slices (SPEC 6)", arguments: [Higgs.small, Higgs.large, Higgs.largeSmallFeeds])
  func slices(workload: Workload) async throws {
    try await Scenario.slices(workload, on: .kafka, store: .postgres)
  }

  @Test("killed at random moments (SPEC 7)")
  func killed() async throws {
    try await Scenario.killed(Higgs.small, on: .kafka, store: .postgres, maxInFlight: 3)
  }
}

@Suite(
  "Generated histories and what an independent oracle says of them (SPEC 4, 5), on PostgreSQL", .crowded,
  .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PostgresGeneratedHistoryTests {
  @Test("one worker", arguments: Generated.workloads)
  func one(workload: Workload) async throws {
    try await Scenario.oneWorker(workload, on: .embedded, store: .postgres)
  }

  @Test("several workers at once (SPEC 6)", arguments: [2, 4], Generated.workloads)
  func several(count: Int, workload: Workload) async throws {
    try await Scenario.workers(count, workload, on: .embedded, store: .postgres)
  }

  @Test("large fan-outs in slices (SPEC 6)", arguments: Generated.workloads)
  func slices(workload: Workload) async throws {
    try await Scenario.slices(workload, on: .embedded, store: .postgres)
  }

  @Test("killed at random moments (SPEC 7)")
  func killed() async throws {
    try await Scenario.killed(Generated.workloads[1], on: .embedded, store: .postgres, maxInFlight: 3)
  }

  @Test("a replay into an empty store rebuilds everything, large fan-outs too (SPEC 8)")
  func replay() async throws {
    let workload = Generated.workloads[1]
    let deployment = try await Deployment.start(on: .embedded, environment: workload.environment)
    try await workload.publish(deployment)
    for sliceSize in [5000, workload.sliceSize] {
      let store = try OwnStore(.postgres, in: deployment.folder)
      try await deployment.run(["replay", "--store", store.option, "--slice-size", "\(sliceSize)"])
      try await workload.check(deployment, store: store, "rebuilt with slices of \(sliceSize)")
    }
  }
}

@Suite(
  "Commands about a PostgreSQL store (SPEC 8)", .crowded,
  .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PostgresCommandTests {
  @Test("benchmarks run, and leave no schema behind")
  func bench() async throws {
    let folder = try TestFolder()
    let address = try #require(PostgresServer.address)
    let result = try await Fanout.run(
      ["bench", "edges", "history", "--store", address, "--scale", "1", "--rounds", "1"], in: folder)
    #expect(result.output.contains("bulk upsert") && result.output.contains("one worker process"))
    #expect(
      try Connection(address).integer(
        "SELECT count(*) FROM pg_namespace WHERE starts_with(nspname::text, 'fanout_bench_')") == 0)
  }

  @Test("migrate makes the tables once, and its dry run says how")
  func migrate() async throws {
    let folder = try TestFolder()
    let store = try OwnStore(.postgres, in: folder)
    let options = ["FANOUT_STORE": store.option]
    let plan = try await Fanout.run(["migrate", "--dry-run"], environment: options, in: folder)
    #expect(plan.output.contains("CREATE TABLE edge"))
    for result in ["made", "already"] {
      #expect(try await Fanout.run(["migrate"], environment: options, in: folder).output.contains(result))
    }
    let refusal = try await Fanout.run(
      ["digest", "--store", "postgres://ann:secret@127.0.0.1:1/db"], in: folder, expecting: 1)
    #expect(refusal.error.contains("127.0.0.1") && !refusal.error.contains("secret"))
  }
}
