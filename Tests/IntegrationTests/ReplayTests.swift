import Kafka
import SocialEvents
import Testing

@Suite("Replay (SPEC 8)", .crowded)
struct ReplayTests {
  @Test("into the store in use it changes nothing", arguments: BrokerKind.available)
  func sameStore(kind: BrokerKind) async throws {
    let workload = Generated.workloads[0]
    let deployment = try await Deployment.start(on: kind, environment: workload.environment)
    try await workload.publish(deployment)
    try await deployment.catchUp()
    let result = try await deployment.run(["replay"])
    #expect(result.output.contains(": 0 changes, 0 deliveries, 0 invalid"), "\(result.output)")
    try await workload.check(deployment, "after a replay into the same store")
  }

  @Test("into an empty store it rebuilds everything, large fan-outs too", arguments: BrokerKind.available)
  func emptyStore(kind: BrokerKind) async throws {
    let workload = Generated.workloads[1]
    let deployment = try await Deployment.start(on: kind, environment: workload.environment)
    try await workload.publish(deployment)
    for sliceSize in [5000, workload.sliceSize] {
      let store = try OwnStore(.sqlite, in: deployment.folder)
      try await deployment.run(["replay", "--store", store.option, "--slice-size", "\(sliceSize)"])
      try await workload.check(deployment, store: store, "rebuilt with slices of \(sliceSize)")
    }
    #expect(try deployment.records(of: [deployment.topics.tasks]).isEmpty, "it leaves no tasks to others")
  }

  @Test(
    "real histories are rebuilt too", .enabled(if: Shared.isPresent, Shared.missing), arguments: BrokerKind.available)
  func higgs(kind: BrokerKind) async throws {
    let workload = Higgs.smallFeeds
    let deployment = try await Deployment.start(on: kind, environment: workload.environment)
    try await workload.publish(deployment)
    try await deployment.catchUp()
    try await deployment.run(["replay"])
    try await workload.check(deployment, "after a replay into the same store")
    let store = try OwnStore(.sqlite, in: deployment.folder)
    try await deployment.run(["replay", "--store", store.option])
    try await workload.check(deployment, store: store, "rebuilt")
  }

  @Test("never moves the workers' offsets, even where FANOUT_GROUP names their group", arguments: BrokerKind.available)
  func offsets(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    try await deployment.emit(lines: (0..<50).map { Lines.follow("a\($0)", "x", id: "1-\($0)") }.joinedLines)
    try await deployment.catchUp()
    let before = try deployment.committed()
    try await deployment.emit(lines: (0..<50).map { Lines.follow("b\($0)", "x", id: "2-\($0)") }.joinedLines)
    try await deployment.run(["replay", "--store", "sqlite:\(deployment.folder.newFile("other.db"))"])
    #expect(try deployment.committed() == before)
    #expect(try deployment.lag() == 50)
    try await deployment.catchUp()
    #expect(try await deployment.dump().count { $0.hasPrefix(#"{"view":"edge""#) } == 100, "nothing was passed over")
  }

  @Test("a topic that is none is refused with the names of all that are taken", arguments: BrokerKind.available)
  func unknownTopic(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    for name in ["tasks", ","] {
      let result = try await deployment.run(["replay", "--topics", name], expecting: 2)
      let hint = result.error.split(separator: "choose from ").last?.split(whereSeparator: \.isWhitespace).first ?? ""
      let offered = hint.split(separator: ",").map(String.init)
      #expect(offered == deployment.topics.events + [deployment.topics.tasks], "\(result.error)")
      try await deployment.run(["replay", "--topics", offered.joined(separator: ",")])
    }
  }

  @Test("of some topics only", arguments: BrokerKind.available)
  func someTopics(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    try await deployment.emit(
      lines: [
        Lines.follow("ann", "bob", id: "1"), Lines.on("like", "ann", "bob", "p", id: "2"),
        Lines.on("favorite", "ann", "bob", "p", id: "3"),
      ].joinedLines)
    let names = [deployment.topics.name(of: .follows), deployment.topics.name(of: .favorites)]
    let result = try await deployment.run(["replay", "--topics", names.joined(separator: ",")])
    #expect(result.output.hasPrefix("replayed 2 events"), "\(result.output)")
    let edges = try await deployment.dump().filter { $0.hasPrefix(#"{"view":"edge""#) }
    #expect(edges.count == 2)
    #expect(!edges.contains { $0.contains(#""like""#) })

    let wrong = try await deployment.run(["replay", "--topics", "nonsense"], expecting: 2)
    #expect(wrong.error.contains("nonsense") && wrong.error.contains(names[0]), "\(wrong.error)")
  }

  @Test("from a time on", .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func fromTime() async throws {
    let deployment = try await Deployment.start(on: .kafka)
    let encoder = EventEncoder()
    // An hour apart in the log, whatever the events say of themselves.
    let records = try (0..<6).map { hour in
      let edge = try Edge.follow(actor: UserID("u\(hour)"), target: UserID("x"))
      let event = Event(
        id: try EventID("e\(hour)"), source: "/test", time: try Timestamp(rfc3339: "2020-01-01T00:00:00Z"),
        assertion: .present(edge, silent: false, extra: nil))
      return try encoder.record(
        of: event, isStructured: false, timestamp: try Timestamp(rfc3339: "2024-05-01T0\(hour):00:00Z"),
        topics: deployment.topics)
    }
    try deployment.send(records)
    for (start, expected) in [
      ("2024-05-01T03:00:00Z", 3), ("2024-05-01T03:00:00.001Z", 2), ("2030-01-01T00:00:00Z", 0),
    ] {
      let store = try OwnStore(.sqlite, in: deployment.folder)
      let result = try await deployment.run(["replay", "--from", start, "--store", store.option])
      #expect(result.output.hasPrefix("replayed \(expected) events"), "\(result.output)")
      let edges = try await deployment.dump(of: store).filter { $0.hasPrefix(#"{"view":"edge""#) }
      #expect(edges.map(String.init) == (6 - expected..<6).map { Lines.followEdge("u\($0)", "x") })
    }
  }
}
