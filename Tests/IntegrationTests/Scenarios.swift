import FanoutStoreTesting
import Foundation
import Testing

/// The ways that a set of events may take through workers. Whichever it is, the store shows the same in the end.
enum Scenario {
  /// One worker applies everything that is there.
  static func oneWorker(_ workload: Workload, on kind: BrokerKind, store: StoreKind = .sqlite) async throws {
    let deployment = try await Deployment.start(on: kind, store: store, environment: workload.environment)
    try await workload.publish(deployment)
    let report = try await deployment.catchUp()
    #expect(report.deadLetters == 0)
    #expect(report.retries == 0)
    #expect(try deployment.lag() == 0)
    try await workload.check(deployment, "one worker")
  }

  /// Several workers share the topics, and the store.
  /// - Parameter count: 2 or 4, so that each gets as many partitions as the others.
  static func workers(
    _ count: Int, _ workload: Workload, on kind: BrokerKind, store: StoreKind = .sqlite
  ) async throws {
    let deployment = try await Deployment.start(on: kind, store: store, environment: workload.environment)
    let workers = try await deployment.startWorkers(count)
    try await workload.publish(deployment)
    try await deployment.allAcknowledged(by: workers)
    for worker in workers {
      let report = try await worker.stopInOrder()
      #expect(report.events > 0, "all workers did some of the work")
      #expect(report.deadLetters == 0)
    }
    try await workload.check(deployment, "\(count) workers")
  }

  /// Large fan-outs are cut into slices. The second time all followers are known before the posts come, so there must be some.
  static func slices(_ workload: Workload, on kind: BrokerKind, store: StoreKind = .sqlite) async throws {
    let deployment = try await Deployment.start(
      on: kind, store: store,
      environment: workload.environment.merging(["FANOUT_SLICE_SIZE": "\(workload.sliceSize)"]) { $1 })
    try await workload.publish(deployment)
    try await deployment.catchUp()
    try await workload.check(deployment, "with slices")
    try await workload.publish(deployment)
    let report = try await deployment.catchUp()
    #expect(report.slicesHandedOver > 0)
    #expect(report.slices >= report.slicesHandedOver, "those that were handed over were done before the worker ended")
    #expect(report.changes == 0, "facts that are known already are no news")
    try await workload.check(deployment, "with slices, everything a second time")
  }

  /// The worker is killed again and again, in the middle of its work.
  static func killed(
    _ workload: Workload, on kind: BrokerKind, store: StoreKind = .sqlite, maxInFlight: Int
  ) async throws {
    // Where the machine is busy elsewhere, all kills may come after the worker has caught up: then once more.
    var hits = 0
    for _ in 0..<6 where hits == 0 {
      hits = try await killedSeveralTimes(workload, on: kind, store, maxInFlight: maxInFlight)
    }
    #expect(hits > 0, "at least one worker was killed before it had caught up")
  }

  /// - Returns: how many kills came before the worker had caught up.
  private static func killedSeveralTimes(
    _ workload: Workload, on kind: BrokerKind, _ store: StoreKind, maxInFlight: Int
  ) async throws -> Int {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("killing workers with seed \(seed)")
    var random = SeededGenerator(seed: seed)
    let deployment = try await Deployment.start(
      on: kind, store: store,
      environment: workload.environment.merging(
        ["FANOUT_SLICE_SIZE": "\(workload.sliceSize)", "FANOUT_MAX_IN_FLIGHT": "\(maxInFlight)"]) { $1 })
    try await workload.publish(deployment)
    var hits = 0
    let rounds = 3
    for round in 0..<rounds {
      let step = workload.registers / (rounds + 1)
      let count = step * round + Int.random(in: 1...step, using: &random)
      let worker = try deployment.startWorker()
      try await eventually("the worker has come as far as \(count)", else: worker.report) {
        #expect(worker.isRunning, "\(worker.report)")
        return deployment.store.registerCount() >= count
      }
      worker.kill()
      if try await deployment.digest() != workload.digest { hits += 1 }
    }
    try await deployment.catchUp(environment: ["FANOUT_MAX_IN_FLIGHT": "15000"])
    #expect(try deployment.lag() == 0)
    try await workload.check(deployment, "killed with seed \(seed), \(hits) times in the middle")
    return hits
  }
}
