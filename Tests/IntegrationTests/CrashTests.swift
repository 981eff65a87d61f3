import FanoutStore
import FanoutStoreTesting
import Foundation
import Kafka
import PostgresTesting
import SocialEvents
import Testing

@Suite(
  "A crash before and after every step (SPEC 7), on a real Kafka", .crowded,
  .enabled(if: RealKafka.isPresent, RealKafka.missing), .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct CrashTests {
  /// All that a worker does on its way from records to offsets.
  private static let steps = [
    "commit schema", "take partitions", "commit facts", "commit views", "produce fanout-tasks",
    "acknowledgement fanout-tasks", "produce dead-letters", "acknowledgement dead-letters", "commit slice",
    "store-offset follows", "store-offset likes", "store-offset favorites", "store-offset posts", "store-offset seen",
    "store-offset fanout-tasks", "commit offsets", "close consumer", "give-up partitions",
  ]

  /// A post whose fan-out is cut into slices, one that is deleted, and a feed that has to be trimmed.
  private static let workload: Workload = {
    var events: [Event] = [
      .follow("u0", "ann", at: 1), .published("star", "p", at: 2), .like("u0", "star", "p", at: 3),
      .favorite("u0", "star", "p", at: 4), .seen("star", upTo: 3), .deleted("ann", "q1"),
    ]
    events += (0..<5).map { .follow("u\($0)", "star", at: $0) }
    events += (0..<8).map { .published("ann", "q\($0)", at: $0) }
    return Generated.workload(
      "every step", events.map { Record($0, recorded: nil) }, settings: StoreSettings(feedLimit: 3), seed: 1)
  }()

  @Test("killed there and started again, a worker has lost nothing and done nothing twice", arguments: StoreKind.all)
  func everyPoint(kind: StoreKind) async throws {
    let whole = try await Life(kind)
    #expect(!whole.wasKilled)
    let names = Set(whole.passed.map(\.name))
    try #require(Self.steps.allSatisfy { names.contains("before \($0)") && names.contains("after \($0)") }, "\(names)")

    let points = whole.passed
    let runners = 4
    let kills = try await withThrowingTaskGroup(of: Int.self) { group in
      for runner in 0..<runners {
        group.addTask {
          var kills = 0
          for index in stride(from: runner, to: points.count, by: runners) {
            let point = points[index]
            let isKilled = try await Life(kind, endingAt: point).wasKilled
            // How often the same is done again, such as committing offsets, depends on the time that all takes.
            #expect(isKilled || point.passing > 1, "\(point) was not passed")
            kills += isKilled ? 1 : 0
          }
          return kills
        }
      }
      return try await group.reduce(0, +)
    }
    print("killed at \(kills) of \(points.count) points, on \(kind.testDescription)")
  }

  /// What becomes of a worker with all that there is to do, and of the one that is started after it.
  private struct Life {
    let passed: [CrashPoint]
    let wasKilled: Bool

    init(_ kind: StoreKind, endingAt point: CrashPoint? = nil) async throws {
      let deployment = try await Deployment.start(
        on: .kafka, store: kind, partitions: 1,
        environment: workload.environment.merging([
          "FANOUT_SLICE_SIZE": "\(workload.sliceSize)",
          // Offsets are committed as soon as they are stored. A static member takes the place of the dead one at once, without
          // waiting for the end of its session.
          "FANOUT_KAFKA": "auto.commit.interval.ms=10;session.timeout.ms=6000;group.instance.id=worker",
        ]) { $1 })
      try await workload.publish(deployment)
      let invalid = ProducerRecord(topic: deployment.topics.name(of: .likes), value: Array("nonsense".utf8))
      try deployment.send([invalid])

      let trail = deployment.folder.file("trail")
      // All events in one batch, as then nobody who is followed has posted before.
      let worker = try deployment.startWorker(
        ["--until-caught-up", "--batch-age", "200"], environment: FaultInjection.crash(at: point, trail: trail))
      let status = try await worker.end()
      let lines = CrashPoint.all(in: try String(contentsOfFile: trail, encoding: .utf8))
      wasKilled = lines.last?.name == "killed"
      passed = wasKilled ? lines.dropLast() : lines
      #expect(status == (wasKilled ? 128 + SIGKILL : 0), "\(worker.report)")
      if let point { #expect(!wasKilled || passed.contains(point)) }

      try await deployment.catchUp()
      let comment: Comment = "killed \(wasKilled ? point?.description ?? "" : "nowhere")"
      try await workload.check(deployment, comment)
      #expect(try deployment.lag() == 0, comment)
      // It comes twice if it was there and the offset was not committed.
      let letters = try deployment.records(of: [deployment.topics.deadLetters])
      #expect(letters.count == 1 || letters.count == 2 && wasKilled, comment)
      #expect(letters.allSatisfy { $0.value == invalid.value }, comment)
      // Else there would be a thousand topics of these tests, more than a small broker can hold.
      try Admin.deleteTopics(deployment.topics.all, with: deployment.client)
    }
  }
}
