import Foundation
import Kafka
import SocialEvents
import Testing

@Suite("Commands about topics (SPEC 3, 8)", .crowded)
struct TopicTests {
  private static let none = ["worker", "emit", "lag", "replay"]

  @Test(
    "missing topics are an error that says how to make them", .enabled(if: RealKafka.isPresent, RealKafka.missing),
    arguments: none)
  func missing(command: String) async throws {
    let deployment = try await Deployment.start(on: .kafka, createsTopics: false)
    let path = try deployment.folder.write("events.ndjson", Lines.follow("ann", "bob", id: "1") + "\n")
    let result = try await deployment.run([command], input: path, expecting: 1)
    #expect(result.error.contains(deployment.topics.prefix), "\(result.error)")
    #expect(result.error.contains("fanout topics create"), "\(result.error)")
  }

  @Test(
    "create makes all seven, once, to keep the whole log; check is content",
    .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func create() async throws {
    let deployment = try await Deployment.start(on: .kafka, createsTopics: false)
    let absent = try await deployment.run(["topics", "check"], expecting: 3)
    #expect(absent.lines.count == 7)
    #expect(absent.lines.allSatisfy { $0.contains("is missing. Run: fanout topics create") }, "\(absent.output)")
    let made = try await deployment.run(["topics", "create", "--partitions", "2"])
    #expect(made.lines.count == 7)
    #expect(made.lines.allSatisfy { $0.contains("created with 2 partitions") }, "\(made.output)")
    let again = try await deployment.run(["topics", "create", "--partitions", "5"])
    #expect(again.lines.allSatisfy { $0.contains("existed with 2 partitions") }, "\(again.output)")
    let content = try await deployment.run(["topics", "check"])
    #expect(content.lines.allSatisfy { $0.contains(" ok, 2 partitions") }, "\(content.output)")
    let settings = try Admin.describeConfigs(topics: deployment.topics.all, with: deployment.client)
    for name in deployment.topics.all {
      #expect(settings[name]?["cleanup.policy"] == "delete")
      #expect(settings[name]?["retention.ms"] == "-1")
      #expect(settings[name]?["retention.bytes"] == "-1")
    }
    let json = try await deployment.run(["topics", "check", "--json"]).lines
    for line in json { _ = try JSONSerialization.jsonObject(with: Data(line.utf8)) }
  }

  @Test(
    "compaction is chosen for events and tasks, never for dead letters",
    .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func compact() async throws {
    let deployment = try await Deployment.start(on: .kafka, createsTopics: false)
    try await deployment.run(["topics", "create", "--partitions", "1", "--compact"])
    let settings = try Admin.describeConfigs(topics: deployment.topics.all, with: deployment.client)
    for name in deployment.topics.all {
      #expect(settings[name]?["cleanup.policy"] == (name == deployment.topics.deadLetters ? "delete" : "compact"))
    }
    let check = try await deployment.run(["topics", "check"])
    #expect(check.lines.count { $0.contains("ok, compacted") } == 6, "\(check.output)")
  }

  @Test(
    "check exits 3 and names the topic that would lose records", .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func retention() async throws {
    let deployment = try await Deployment.start(on: .kafka, createsTopics: false)
    let likes = deployment.topics.name(of: .likes)
    let outcomes = try Admin.createTopics(
      [
        Admin.TopicSpec(name: likes, partitions: 1, replicationFactor: 1, configuration: ["retention.ms": "86400000"]),
        Admin.TopicSpec(name: deployment.topics.deadLetters, partitions: 1, replicationFactor: 1),
      ], with: deployment.client)
    #expect(outcomes.count == 2)
    try await deployment.run(["topics", "create", "--partitions", "1"])
    let result = try await deployment.run(["topics", "check"], expecting: 3)
    #expect(result.lines.contains { $0.hasPrefix(likes) && $0.contains("retention.ms=86400000") }, "\(result.output)")
    #expect(result.lines.contains { $0.hasPrefix(deployment.topics.deadLetters) && $0.contains("max.message.bytes") })
    #expect(result.lines.count { $0.contains(" ok, ") } == 5)
  }

  @Test("the embedded broker has its topics already")
  func embedded() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let made = try await deployment.run(["topics", "create"])
    #expect(made.lines.count == 7)
    #expect(made.lines.allSatisfy { $0.contains("existed with 4 partitions") }, "\(made.output)")
  }

  @Test("check does not call fine what it could not look at: the embedded broker tells no settings")
  func unknownSettings() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let result = try await deployment.run(["topics", "check"], expecting: 1)
    #expect(result.lines.count == 7)
    #expect(result.lines.allSatisfy { $0.contains("settings unknown, 4 partitions") }, "\(result.output)")
    #expect(result.error.contains("did not tell"), "\(result.error)")
  }

  @Test("lag tells what is not applied, before and after", arguments: BrokerKind.available)
  func lag(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    #expect(try await deployment.run(["lag"]).output.contains("lag in all: 0"))
    try await deployment.emit(lines: (0..<30).map { Lines.follow("u\($0)", "x", id: "\($0)") }.joinedLines)
    let before = try await deployment.run(["lag"])
    #expect(before.output.contains("lag in all: 30"), "\(before.output)")
    #expect(try await sums(deployment) == ["end": 30, "committed": 0, "lag": 30])
    try await deployment.catchUp()
    #expect(try await deployment.run(["lag"]).output.contains("lag in all: 0"))
    #expect(try await sums(deployment) == ["end": 30, "committed": 30, "lag": 0])
    try await deployment.emit(lines: (0..<5).map { Lines.post("x", "p\($0)", id: "p\($0)") }.joinedLines)
    #expect(try await sums(deployment) == ["end": 35, "committed": 30, "lag": 5])
  }

  private func sums(_ deployment: Deployment) async throws -> [String: Int] {
    var sums: [String: Int] = ["end": 0, "committed": 0, "lag": 0]
    let lines = try await deployment.run(["lag", "--json"]).lines
    #expect(lines.count == deployment.partitions * 6)
    for line in lines {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
      for name in sums.keys { sums[name, default: 0] += object[name] as? Int ?? 0 }
      #expect((object["oldestUnappliedSeconds"] != nil) == (object["lag"] as? Int != 0), "\(line)")
    }
    return sums
  }
}
