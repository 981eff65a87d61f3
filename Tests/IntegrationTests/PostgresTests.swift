import Foundation
import PostgresStore
import Testing

/// A PostgreSQL server, which whoever runs the tests has started.
enum RealPostgres {
  static let address =
    ProcessInfo.processInfo.environment["FANOUT_TEST_POSTGRES"].flatMap { $0.isEmpty ? nil : $0 }
  static let isPresent = address != nil
  static let missing: Comment = "SKIPPED: no PostgreSQL server; give its address as FANOUT_TEST_POSTGRES"

  /// The address of a schema that nobody else uses.
  static func newStore() throws -> String {
    let address = try #require(address)
    let schema = "i\(UInt64.random(in: 0...UInt64.max))"
    try Connection(address).execute("CREATE SCHEMA \(schema)")
    return address + (address.contains("?") ? "&" : "?") + "options=-csearch_path%3D\(schema)"
  }
}

@Suite(
  "Real histories and their published digests (SPEC 9), on PostgreSQL", .crowded,
  .enabled(if: Shared.isPresent, Shared.missing), .enabled(if: RealPostgres.isPresent, RealPostgres.missing))
struct PostgresTests {
  private func onPostgres(_ workload: Workload) throws -> Workload {
    var workload = workload
    workload.environment["FANOUT_STORE"] = try RealPostgres.newStore()
    return workload
  }

  @Test("one worker", arguments: [Higgs.small, Higgs.smallFeeds], BrokerKind.available)
  func one(workload: Workload, kind: BrokerKind) async throws {
    try await Scenario.oneWorker(try onPostgres(workload), on: kind)
  }

  @Test("two workers at once (SPEC 6)", arguments: [Higgs.small, Higgs.smallFeeds], BrokerKind.available)
  func two(workload: Workload, kind: BrokerKind) async throws {
    try await Scenario.twoWorkers(try onPostgres(workload), on: kind)
  }

  @Test("large fan-outs in slices (SPEC 6)", arguments: BrokerKind.available)
  func slices(kind: BrokerKind) async throws {
    try await Scenario.slices(try onPostgres(Higgs.small), on: kind)
  }

  @Test("benchmarks run, and leave no schema behind")
  func bench() async throws {
    let folder = try TestFolder()
    let address = try #require(RealPostgres.address)
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
    let store = try RealPostgres.newStore()
    let plan = try await Fanout.run(["migrate", "--dry-run", "--store", store], in: folder)
    #expect(plan.output.contains("CREATE TABLE edge"))
    for result in ["made", "already"] {
      #expect(try await Fanout.run(["migrate", "--store", store], in: folder).output.contains(result))
    }
    let refusal = try await Fanout.run(
      ["digest", "--store", "postgres://ann:secret@127.0.0.1:1/db"], in: folder, expecting: 1)
    #expect(refusal.error.contains("127.0.0.1") && !refusal.error.contains("secret"))
  }
}
