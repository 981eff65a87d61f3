import Kafka
import SocialEvents
import Testing

@Suite("Ends that bring no record (KAFKA.md: gaps never fill)", .crowded)
struct CatchUpTests {
  /// A partition that ends with a transaction marker: its last offset is never delivered.
  @Test(
    "beside a worker that holds a partition with a transaction marker at its end, another still catches up, and lag is 0",
    .enabled(if: KafkaTool.isPresent, KafkaTool.missing))
  func transactionMarker() async throws {
    let deployment = try await Deployment.start(on: .kafka, partitions: 1)
    let lines = (0..<10).map { Lines.follow("u\($0)", "x", id: "\($0)") }.joinedLines
    let payload = try deployment.folder.write("payload.ndjson", lines)
    try await KafkaTool.run([
      "producer-perf-test", "--topic", deployment.topics.name(of: .follows), "--num-records", "40", "--throughput",
      "-1",
      "--payload-file", payload, "--producer-props", "bootstrap.servers=\(deployment.brokers)", "--transactional-id",
      deployment.group, "--transaction-duration-ms", "50",
    ])
    let holder = try deployment.startWorker()
    try await holder.isAssigned()
    let report = try await deployment.catchUp()
    #expect(report.events <= 40)
    try await eventually("lag is 0", else: holder.report) { try deployment.lag() == 0 }
    try await holder.stopInOrder()
    // Nor does a replay wait for what never comes, or complain of it.
    let other = "sqlite:\(deployment.folder.newFile("other.db"))"
    try await deployment.run(["replay", "--store", other])
    #expect(try await deployment.run(["digest", "--store", other]).output == deployment.run(["digest"]).output)
  }
}
