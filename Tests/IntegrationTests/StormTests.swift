import FanoutStoreTesting
import Foundation
import Glibc
import PostgresTesting
import SocialEvents
import Testing

@Suite(
  "Rebalance storm (SPEC 7)", .crowded, .enabled(if: Shared.isPresent, Shared.missing),
  .enabled(if: RealKafka.isPresent, RealKafka.missing),
  .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct StormTests {
  private static let members = 10
  private static let seconds = 60
  private static let history = ["--interactions", "20000", "--shuffle", "7", "--duplicate", "0.3"]

  @Test("ten members join and leave for a minute under load: nothing is lost", arguments: StoreKind.all)
  func storm(on store: StoreKind) async throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    let workload = Higgs.largeShuffled
    let deployment = try await Deployment.start(
      on: .kafka, store: store, partitions: 6,
      environment: workload.environment.merging([
        "FANOUT_SLICE_SIZE": "\(workload.sliceSize)", "FANOUT_MAX_IN_FLIGHT": "1500",
      ]) { $1 })
    try await deployment.run(["migrate"])
    let load = GradualLoad(try await Higgs.file(Self.history), on: deployment)
    async let emitted: Void = load.run()
    let reports = try await withThrowingTaskGroup(of: [WorkerReport].self) { group in
      for member in 0..<Self.members {
        let random = SeededGenerator(seed: seed &+ UInt64(member))
        group.addTask { try await Self.comeAndGo(deployment, random) }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    load.hurry()
    try await emitted
    let last = try deployment.startWorker()
    try await deployment.allAcknowledged(by: [last])
    let all = reports + [try await last.stopInOrder()]

    #expect(all.allSatisfy { $0.deadLetters == 0 })
    #expect(try deployment.records(of: [deployment.topics.deadLetters]).isEmpty)
    let rebalances = all.reduce(0) { $0 + $1["rebalances"] }
    #expect(rebalances > 2 * Self.members, "\(rebalances) are no storm")
    let records = try deployment.committed().values.reduce(0, +)
    let applied = all.reduce(0) { $0 + $1["records"] }
    print(
      """
      storm on \(store.testDescription), seed \(seed): \(all.count) members came and went, \(rebalances) assignments; \
      \(records) records and tasks were applied \(applied) times, \(applied - Int(records)) of them again
      """)
    try await workload.check(deployment, "storm with seed \(seed)")
  }

  /// - Returns: what the worker said each time it left.
  private static func comeAndGo(_ deployment: Deployment, _ random: SeededGenerator) async throws -> [WorkerReport] {
    var random = random
    var reports: [WorkerReport] = []
    let end = ContinuousClock.now + .seconds(seconds)
    while ContinuousClock.now < end {
      try await Task.sleep(for: .seconds(Double.random(in: 0...4, using: &random)))
      let worker = try deployment.startWorker()
      try await worker.isAssigned()
      try await Task.sleep(for: .seconds(Double.random(in: 0...8, using: &random)))
      reports.append(try await worker.stopInOrder())
    }
    return reports
  }
}
