import Glibc
import Testing

@Suite("Workers come and go (SPEC 7)", .crowded)
struct RebalanceTests {
  @Test(
    "a second worker joins at work and the first leaves: nothing is lost or done twice (PostHog PR 80897)",
    arguments: BrokerKind.available)
  func joinAndLeave(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let load = try Load(on: deployment)
    let share = "assigned \(deployment.partitions / 2 * 6) partitions"
    let first = try deployment.startWorker()
    try await eventually("the first is at work", else: first.report) { deployment.store.registerCount() > 100 }
    let second = try deployment.startWorker()
    try await first.says(share)
    try await second.says(share)
    let count = deployment.store.registerCount()
    try await eventually("work goes on", else: second.report) { deployment.store.registerCount() > count + 100 }
    let firstReport = try await first.stopInOrder()
    let total = try await load.stop()
    try await deployment.allAcknowledged(by: [second])
    let secondReport = try await second.stopInOrder()

    // The embedded broker, unlike a real one, refuses commits once a rebalance has begun.
    #expect(
      firstReport.events + secondReport.events == total || kind == .embedded,
      "what was finished is committed before it is given up:\n\(first.report)\n\(second.report)")
    #expect(firstReport.changes + secondReport.changes == total)
    #expect(Set(try await edges(deployment)) == load.expectedEdges())
  }

  @Test(
    "a worker that was thrown out of the group does no harm when it comes back (notifications-backend PR 600)",
    arguments: BrokerKind.available)
  func thrownOut(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let load = try Load(on: deployment)
    let first = try deployment.startWorker(["--max-in-flight", "600"])
    try await eventually("the first is at work", else: first.report) { deployment.store.registerCount() > 100 }
    // Asleep for longer than its session lasts, as in a container that was paused; but not within a transaction, which
    // would keep the store from everybody.
    try await eventually("it sleeps without holding the store's lock", else: first.report) {
      try await first.suspend()
      if let lock = try? StoreLock(deployment.store.path) {
        lock.release()
        return true
      }
      first.signal(SIGCONT)
      return false
    }
    let second = try deployment.startWorker()
    try await second.says("assigned \(deployment.partitions * 6) partitions")
    let count = deployment.store.registerCount()
    try await eventually("the second does all the work", else: second.report) {
      deployment.store.registerCount() > count + 100
    }
    let session = ContinuousClock.now + .seconds(7)
    try await eventually("its session is over by its own clock as well") { ContinuousClock.now > session }
    first.signal(SIGCONT)
    try await first.says("longer than its session of 6000 ms; it drops what it had fetched")
    try await first.says("lost ")
    try await first.says("assigned \(deployment.partitions / 2 * 6) partitions")
    try await load.stop()
    try await deployment.allAcknowledged(by: [first, second])
    try await first.stopInOrder()
    try await second.stopInOrder()
    #expect(Set(try await edges(deployment)) == load.expectedEdges())
  }

  @Test(
    "a killed worker's partitions go to the one that is left, its unfinished work included",
    arguments: BrokerKind.available)
  func killed(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let load = try Load(on: deployment)
    let workers = try await deployment.startWorkers(2)
    let count = deployment.store.registerCount()
    try await eventually("they are at work", else: workers[0].report) { deployment.store.registerCount() > count + 100 }
    workers[0].kill()
    try await workers[1].says("assigned \(deployment.partitions * 6) partitions")
    try await load.stop()
    try await deployment.allAcknowledged(by: [workers[1]])
    try await workers[1].stopInOrder()
    #expect(Set(try await edges(deployment)) == load.expectedEdges())
  }

  @Test(
    "more workers than partitions: those without any wait, and end when asked",
    .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func tooMany() async throws {
    let deployment = try await Deployment.start(on: .kafka, partitions: 1)
    let workers = try (0..<3).map { _ in try deployment.startWorker() }
    for worker in workers { try await worker.isAssigned() }
    try await deployment.emit(lines: (0..<20).map { Lines.follow("u\($0)", "x", id: "\($0)") }.joinedLines)
    try await deployment.allAcknowledged(by: workers)
    for worker in workers { try await worker.stopInOrder() }
    #expect(try await edges(deployment).count == 20)
  }

  @Test(
    "of two with one group.instance.id, the older ends and says why",
    .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func sameInstance() async throws {
    let deployment = try await Deployment.start(
      on: .kafka, environment: ["FANOUT_KAFKA": "group.instance.id=one;session.timeout.ms=6000"])
    let first = try deployment.startWorker()
    try await first.isAssigned()
    let second = try deployment.startWorker()
    try await second.isAssigned()
    #expect(try await first.end() == 1, "\(first.report)")
    #expect(first.standardError.contains("Give each worker a group.instance.id of its own"), "\(first.report)")
    try await second.stopInOrder()
  }

  @Test("catching up waits out a rebalance that takes long", .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func slowRebalance() async throws {
    let deployment = try await Deployment.start(on: .kafka)
    try await deployment.run(["migrate"])
    let first = try deployment.startWorker()
    try await first.isAssigned()
    // The first can't give its partitions up while it has work at hand that it can't finish.
    let lock = try StoreLock(deployment.store.path)
    try await deployment.emit(lines: Lines.follow("ann", "bob", id: "1") + "\n")
    let second = try deployment.startWorker(["--until-caught-up"])
    try await second.says("worker started")
    // Longer than any single question to Kafka may take.
    try await Task.sleep(for: .seconds(14))
    lock.release()
    #expect(try await second.end() == 0, "\(second.report)")
    try await first.stopInOrder()
    #expect(try await edges(deployment) == [Lines.followEdge("ann", "bob")])
  }

  private func edges(_ deployment: Deployment) async throws -> [String] {
    try await deployment.dump().filter { $0.hasPrefix(#"{"view":"edge""#) }.map(String.init)
  }
}
