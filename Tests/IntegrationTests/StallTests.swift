import Glibc
import Kafka
import SocialEvents
import Testing

@Suite("Kafka's client falls silent or fails (KAFKA.md)", .crowded)
struct StallTests {
  @Test("a partition of which nothing comes is fetched from anew", arguments: BrokerKind.available)
  func silentUntilSought(kind: BrokerKind) async throws {
    let log = try await recovered(on: kind, from: "silent-until-seek follows 1")
    #expect(log.contains("follows[1], where there are some; fetching them begins anew"))
    #expect(!log.contains("A new Kafka client takes over"), "\(log)")
  }

  @Test("and if that does not help, the client is replaced", arguments: BrokerKind.available)
  func silentUntilReplaced(kind: BrokerKind) async throws {
    let log = try await recovered(on: kind, from: "silent-until-new follows 1")
    #expect(log.contains("follows[1], where there are some. A new Kafka client takes over"))
  }

  @Test("a client that failed for good is replaced", arguments: BrokerKind.available)
  func fatal(kind: BrokerKind) async throws {
    let log = try await recovered(on: kind, from: "fatal")
    #expect(log.contains("for a test [UNKNOWN]. A new Kafka client takes over"), "\(log)")
  }

  /// - Returns: the log of a worker that has met a fault at work, and has applied everything nevertheless.
  private func recovered(on kind: BrokerKind, from fault: String) async throws -> String {
    let deployment = try await Deployment.start(on: kind)
    let path = deployment.folder.file("fault")
    let load = try Load(on: deployment)
    let worker = try deployment.startWorker(
      ["--stall-timeout", "1"], environment: FaultInjection.preload.merging(["KAFKA_FAULT": path]) { $1 })
    try await eventually("it is at work", else: worker.report) { deployment.store.registerCount() > 100 }
    _ = unsafe rename(try deployment.folder.write("new-fault", fault), path)
    try await worker.says(fault == "fatal" ? "A new Kafka client" : "where there are some")
    let sent = load.sent
    try await eventually("work goes on", else: worker.report) { load.sent > sent + 100 }
    try await load.stop()
    try await deployment.allAcknowledged(by: [worker])
    #expect(try await worker.stopInOrder().deadLetters == 0)
    let edges = try await deployment.dump().filter { $0.contains(#""view":"edge""#) }.map(String.init)
    #expect(Set(edges) == load.expectedEdges())
    return worker.standardError
  }
}
