import FanoutStoreTesting
import Foundation
import PostgresTesting
import SocialEvents
import Testing

/// Lets workers apply a workload while their PostgreSQL crashes and their connections are cut, at random moments.
struct Outages {
  private let server: OwnPostgres
  private let deployment: Deployment
  private let workers: [ChildProcess]

  private static let crashes = 4
  private static let cutsBetween = 6

  static func run(on workload: Workload, workers: Int) async throws {
    // Where the machine is slow to start the server again, the workers may have done all before the last crash: then once more,
    // in smaller steps.
    for maxInFlight in [600, 300, 150, 75, 36] {
      if try await run(on: workload, workers: workers, maxInFlight: maxInFlight) { return }
    }
    Issue.record("the server never crashed as often as it should before all was applied")
  }

  /// - Returns: whether all crashes came while there was work.
  private static func run(on workload: Workload, workers count: Int, maxInFlight: Int) async throws -> Bool {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("crashing PostgreSQL with seed \(seed), at most \(maxInFlight) records in flight")
    var random = SeededGenerator(seed: seed)
    let server = try await onThread { try OwnPostgres() }
    defer { server.stop() }
    let deployment = try await Deployment.start(
      on: .kafka, store: .postgresAt(server.address),
      environment: workload.environment.merging([
        "FANOUT_SLICE_SIZE": "\(workload.sliceSize)", "FANOUT_MAX_IN_FLIGHT": "\(maxInFlight)",
        // However slow the machine is, who was thrown out of the group was so for the server's sake.
        "FANOUT_KAFKA": "session.timeout.ms=45000",
      ]) { $1 })
    let workers = try await deployment.startWorkers(count)
    async let published: Void = workload.publish(deployment)
    let outages = Outages(server: server, deployment: deployment, workers: workers)
    let (hits, cuts) = try await outages.drive(registers: workload.registers, &random)
    try await published
    try await deployment.allAcknowledged(by: workers)
    for worker in workers {
      let report = try await worker.stopInOrder()
      #expect(report.deadLetters == 0)
      #expect(report["rebalances"] <= count, "it kept its place in the group meanwhile")
    }
    #expect(try deployment.lag() == 0)
    #expect(try deployment.records(of: [deployment.topics.deadLetters]).isEmpty)
    print("seed \(seed): \(hits) crashes while there was work, \(cuts) connections cut")
    try await workload.check(deployment, "\(hits) crashes and \(cuts) cut connections, seed \(seed)")
    return hits == crashes && cuts > 0
  }

  /// - Returns: how often the server crashed while there was work, and how many connections of workers were cut.
  private func drive(registers: Int, _ random: inout SeededGenerator) async throws -> (hits: Int, cuts: Int) {
    var hits = 0
    var cuts = 0
    let steps = Self.crashes * (Self.cutsBetween + 1)
    // The last crash comes before the end.
    let step = registers * 9 / 10 / steps
    for number in 0..<steps {
      try await reached(step * number + Int.random(in: 0..<step, using: &random))
      if number % (Self.cutsBetween + 1) != Self.cutsBetween {
        cuts += try cut()
      } else if try await crash() {
        hits += 1
      }
    }
    return (hits, cuts)
  }

  private func reached(_ count: Int) async throws {
    try await eventually("\(count) registers are known", else: reports) {
      try workers.mustRun()
      return deployment.store.registerCount() >= count
    }
  }

  private func cut() throws -> Int {
    // A connection of its own: the last one may not have outlived a crash.
    try SharedConnection(server.address).integer(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'fanout'")
  }

  /// - Returns: false if the workers had nothing to do any more.
  private func crash() async throws -> Bool {
    let server = server
    try await onThread { try server.crash() }
    // Whoever tries again from now on has something at hand that is not applied.
    let before = workers.map(retries)
    var hadWork = true
    try await eventually("a worker finds the server away", else: reports) {
      try workers.mustRun()
      if zip(workers, before).contains(where: { retries($0) > $1 }) { return true }
      hadWork = try deployment.lag() > 0
      return !hadWork
    }
    try await onThread { try server.start() }
    return hadWork
  }

  private func retries(_ worker: ChildProcess) -> Int {
    worker.standardError.split(separator: "\n").count { $0.contains("trying again in ") }
  }

  private var reports: String { workers.map(\.report).joined(separator: "\n") }
}
