import Foundation
import Glibc
import SocialEvents
import Testing

@Suite("SIGTERM and SIGINT (SPEC 7)", .crowded)
struct StopTests {
  @Test(
    "in the middle of load: exit 0, and what was applied is exactly what was committed", arguments: [SIGTERM, SIGINT],
    BrokerKind.available)
  func underLoad(signal: Int32, kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let load = try Load(on: deployment)
    let worker = try deployment.startWorker(["--max-in-flight", "60"])
    try await eventually("the worker is at work", else: worker.report) { deployment.store.registerCount() > 200 }
    let report = try await worker.stopInOrder(by: signal)
    let total = try await load.stop()

    let applied = deployment.store.registerCount()
    #expect(report.events == applied)
    let lag = try deployment.lag()
    #expect(lag == total - applied, "nothing is lost, and nothing will be done twice")
    #expect(worker.standardError.contains("gave up "), "it left the group in order")
    try await deployment.catchUp()
    #expect(try await edges(deployment) == load.expectedEdges())
  }

  @Test(
    "a stopped worker's successor need not wait for the session to time out",
    .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func successor() async throws {
    let patient = ["FANOUT_KAFKA": "session.timeout.ms=45000"]
    let deployment = try await Deployment.start(on: .kafka, environment: patient)
    let load = try Load(on: deployment)
    for _ in 0..<3 {
      let count = deployment.store.registerCount()
      let worker = try deployment.startWorker()
      try await eventually("it has the partitions and is at work", else: worker.report) {
        deployment.store.registerCount() > count
      }
      try await worker.stopInOrder()
    }
    try await load.stop()
    try await deployment.catchUp()
    #expect(try await edges(deployment) == load.expectedEdges())
  }

  @Test("a worker with nothing to do stops as well, and one that is still joining its group", arguments: [true, false])
  func idle(isAssigned: Bool) async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let worker = try deployment.startWorker()
    if isAssigned { try await worker.isAssigned() } else { try await worker.says("worker started") }
    try await worker.stopInOrder()
  }

  @Test("while the store is locked: it gives up after the grace period, and nothing is lost")
  func lockedStore() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    try await deployment.run(["migrate"])
    let lock = try StoreLock(deployment.store.path)
    let worker = try await blockedWorker(deployment, gracePeriod: 1)
    worker.signal(SIGTERM)
    let status = try await worker.end()
    #expect(status == 0, "\(worker.report)")
    lock.release()
    #expect(try deployment.lag() == 20)
    try await deployment.catchUp()
    #expect(try await edges(deployment).count == 20)
  }

  @Test("asked for while a revoke waits for a locked store: the grace period counts, not the revoke's patience")
  func duringRevoke() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    try await deployment.run(["migrate"])
    let lock = try StoreLock(deployment.store.path)
    let worker = try await blockedWorker(deployment, gracePeriod: 2)
    // Another member makes the group revoke what the first has.
    let other = try deployment.startWorker(["--grace-period", "2"])
    try await other.says("worker started")
    worker.signal(SIGTERM)
    let status = try await worker.end(within: 20)
    #expect(status == 0, "\(worker.report)")
    lock.release()
    try await other.stopInOrder()
    try await deployment.catchUp()
    #expect(try await edges(deployment).count == 20)
  }

  @Test("before brokers can be reached: it does not wait for them")
  func unreachable() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let worker = try deployment.startWorker(["--brokers", "127.0.0.1:1", "--grace-period", "3"])
    try await worker.says("can't reach Kafka")
    worker.signal(SIGTERM)
    #expect(try await worker.end(within: 20) == 0, "\(worker.report)")
  }

  @Test(
    "after a topic was deleted under it: it does not use up the grace period",
    .enabled(if: KafkaTool.isPresent, KafkaTool.missing))
  func deletedTopic() async throws {
    let deployment = try await Deployment.start(on: .kafka)
    let worker = try deployment.startWorker([
      "--grace-period", "600", "--kafka", "topic.metadata.refresh.interval.ms=500", "--kafka",
      "session.timeout.ms=6000",
    ])
    try await worker.isAssigned()
    try await KafkaTool.run([
      "topics", "--bootstrap-server", deployment.brokers, "--delete", "--topic", deployment.topics.name(of: .seen),
    ])
    try await worker.says(deployment.topics.name(of: .seen))
    worker.signal(SIGTERM)
    #expect(try await worker.end(within: 60) == 0, "\(worker.report)")
  }

  @Test("a later second signal ends it at once, with status 1, and nothing is lost")
  func twice() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    try await deployment.run(["migrate"])
    let lock = try StoreLock(deployment.store.path)
    let worker = try await blockedWorker(deployment, gracePeriod: 600)
    // Wrappers repeat a signal that has reached the worker already: that is not a second request.
    worker.signal(SIGTERM)
    worker.signal(SIGINT)
    worker.signal(SIGTERM)
    try await Task.sleep(for: .milliseconds(500))
    #expect(worker.isRunning)
    try await eventually("somebody who really means it is heard", else: worker.report) {
      worker.signal(SIGINT)
      return !worker.isRunning
    }
    #expect(worker.status == 1)
    #expect(worker.standardError.contains("twice"))
    lock.release()
    try await deployment.catchUp()
    #expect(try await edges(deployment).count == 20)
  }

  /// A worker with more at hand than it may have, waiting for a store that is locked.
  private func blockedWorker(_ deployment: Deployment, gracePeriod: Int) async throws -> ChildProcess {
    try await deployment.emit(lines: (0..<20).map { Lines.follow("u\($0)", "x", id: "\($0)") }.joinedLines)
    let worker = try deployment.startWorker([
      "--grace-period", "\(gracePeriod)", "--max-in-flight", "3", "--log-level", "debug",
    ])
    try await worker.says("fetching pauses")
    return worker
  }

  private func edges(_ deployment: Deployment) async throws -> Set<String> {
    Set(try await deployment.dump().filter { $0.hasPrefix(#"{"view":"edge""#) }.map(String.init))
  }
}
