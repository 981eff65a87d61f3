import FanoutStoreTesting
import Kafka
import SocialEvents
import Testing

@Suite("Records that can't be applied (SPEC 2, 3, 7)", .crowded)
struct InvalidInputTests {
  @Test(
    "each is on the dead letters once, unchanged and with its reason, and all others are applied",
    arguments: BrokerKind.available)
  func everyReason(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let topics = deployment.topics
    let invalid = InvalidRecords(topics: topics).all
    // What a store refuses is another story: see `OutageTests`.
    let reasons = InvalidEvent.Reason.allCases.filter { $0 != .refused }.map(\.rawValue)
    #expect(Set(invalid.map(\.reason)) == Set(reasons), "every reason is tried")

    var records: [ProducerRecord] = []
    for (number, entry) in invalid.enumerated() {
      records.append(entry.record)
      records.append(try follow(number, topics))
      if number % 10 == 0 {
        records.append(ProducerRecord(topic: topics.name(of: .follows), key: Array("gone\(number)".utf8), value: nil))
      }
    }
    records.append(ProducerRecord(topic: topics.tasks, key: Array("gone".utf8), value: nil))
    let tombstones = records.count { $0.value == nil }
    records += Self.oddButValid(topics)
    try deployment.send(records)

    let report = try await deployment.catchUp()
    #expect(report.deadLetters == invalid.count)
    #expect(report.tombstones == tombstones)
    #expect(report.events == invalid.count + Self.oddButValid(topics).count)
    try checkDeadLetters(deployment, invalid)
    let expected =
      invalid.indices.map { Lines.followEdge("u\($0)", "hub") }
      + ["first", "silent-null", "bom", "ünï"]
      .map { Lines.followEdge($0, "hub") }
    let edges = try await deployment.dump().filter { $0.hasPrefix(#"{"view":"edge""#) }.map(String.init)
    #expect(edges == expected.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })

    try await deployment.catchUp()
    #expect(try deployment.records(of: [topics.deadLetters]).count == invalid.count, "once, not at every start")
    #expect(try deployment.lag() == 0)
  }

  @Test("random bytes and damaged events neither stop the worker nor get lost", arguments: BrokerKind.available)
  func garbage(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let seed = UInt64.random(in: 0...UInt64.max)
    let garbage = Garbage(seed: seed, topics: deployment.topics, count: 400)
    try deployment.send(garbage.records)
    let report = try await deployment.catchUp()
    #expect(report.records == garbage.records.count, "seed \(seed)")
    #expect(report.deadLetters == garbage.invalid.count, "seed \(seed)")
    try checkDeadLetters(deployment, garbage.invalid)
    #expect(try deployment.lag() == 0)
  }

  @Test(
    "a trace context goes along into the log, the tasks and the dead letters (SPEC 3)", arguments: BrokerKind.available)
  func traceparent(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind, environment: ["FANOUT_SLICE_SIZE": "2"])
    try await deployment.emit(lines: (0..<10).map { Lines.follow("f\($0)", "ann", id: "\($0)") }.joinedLines)
    try await deployment.catchUp()
    let trace = InvalidRecords.traceparent
    let post = ProducerRecord(
      topic: deployment.topics.name(of: .posts), value: Array(#"{"author":"ann","post":"p"}"#.utf8),
      headers: InvalidRecords.headers(["ce_type": "post-published"]) + [Header("traceparent", trace)])
    let bad = ProducerRecord(
      topic: deployment.topics.name(of: .posts), value: [1], headers: [Header("traceparent", trace)])
    try deployment.send([post, bad])
    let result = try await deployment.run(["worker", "--until-caught-up"])
    #expect(result.error.contains("dead letter: ") && result.error.contains("traceparent=\(trace)"), "\(result.error)")
    let tasks = try deployment.records(of: [deployment.topics.tasks])
    #expect(!tasks.isEmpty)
    #expect(tasks.allSatisfy { $0.header("traceparent") == trace })
    #expect(try deployment.records(of: [deployment.topics.deadLetters]).map { $0.header("traceparent") } == [trace])
  }

  // MARK: Records

  private func follow(_ number: Int, _ topics: Topics) throws -> ProducerRecord {
    let edge = try Edge.follow(actor: UserID("u\(number)"), target: UserID("hub"))
    let event = Event(
      id: try EventID("e\(number)"), source: "/test", time: try Timestamp(rfc3339: "2024-05-01T10:00:00Z"),
      assertion: .present(edge, silent: false, extra: nil))
    return try EventEncoder().record(of: event, isStructured: number % 2 == 0, topics: topics)
  }

  /// Events that look wrong and are not.
  private static func oddButValid(_ topics: Topics) -> [ProducerRecord] {
    let values = [
      // Of members with the same name the first counts.
      #"{"actor":"first","actor":"second","target":"hub","target":"other"}"#,
      #" { "later" : [ { } ] , "target" : "hub" , "actor" : "silent-null" , "silent" : null , "extra" : null } "#,
      "\u{FEFF}" + #"{"actor":"bom","target":"hub"}"#,
      #"{"actor":"\u00fcn\u00ef","target":"hub"}"#,
    ]
    return values.map {
      // On a topic of another family: nothing may depend on which one an event comes by (SPEC 3).
      ProducerRecord(topic: topics.name(of: .seen), value: Array($0.utf8), headers: InvalidRecords.headers())
    }
  }

  // MARK: Checks

  private func checkDeadLetters(_ deployment: Deployment, _ invalid: [InvalidRecord]) throws {
    let topics = deployment.topics
    let sources = try deployment.records(of: topics.events + [topics.tasks])
    let letters = try deployment.records(of: [topics.deadLetters])
    #expect(letters.count == invalid.count)
    for entry in invalid {
      let found = letters.filter { $0.header("case") == entry.name }
      guard let letter = found.first, found.count == 1,
        let source = sources.first(where: { $0.header("case") == entry.name })
      else {
        Issue.record("\"\(entry.name)\" is on the dead letters \(found.count) times")
        continue
      }
      let about = Comment(rawValue: entry.name)
      #expect(letter.header("fanout.dlq.reason") == entry.reason, about)
      #expect(letter.header("fanout.dlq.topic") == source.partition.topic, about)
      #expect(letter.header("fanout.dlq.partition") == "\(source.partition.partition)", about)
      #expect(letter.header("fanout.dlq.offset") == "\(source.offset)", about)
      #expect(letter.header("fanout.dlq.timestamp") == source.timestampMilliseconds.map { "\($0)" }, about)
      #expect(letter.header("fanout.dlq.attempt") == "1", about)
      #expect(letter.header("fanout.dlq.group") == deployment.group, about)
      #expect(letter.header("fanout.dlq.message")?.isEmpty == false, about)
      #expect(letter.key == source.key && letter.key == entry.record.key, about)
      #expect(letter.value == source.value && letter.value == entry.record.value, about)
      #expect(letter.headers.filter { !$0.name.hasPrefix("fanout.dlq.") } == entry.record.headers, about)
    }
  }
}

/// Random bytes and damaged events.
private struct Garbage {
  private(set) var records: [ProducerRecord] = []
  /// Those of the records that are not events, as the decoder says.
  private(set) var invalid: [InvalidRecord] = []

  init(seed: UInt64, topics: Topics, count: Int) {
    var random = SeededGenerator(seed: seed)
    for number in 0..<count {
      var record = ProducerRecord(
        topic: topics.events[Int.random(in: 0..<5, using: &random)], value: Self.value(&random),
        headers: Bool.random(using: &random) ? [] : InvalidRecords.headers())
      if Bool.random(using: &random) {
        record.headers.append(Header("content-type", "application/cloudevents+json"))
      }
      record.headers.append(Header("case", "garbage \(number)"))
      records.append(record)
      if let reason = Self.reason(record) {
        invalid.append(InvalidRecord(name: "garbage \(number)", reason: reason, record: record))
      }
    }
  }

  private static func value(_ random: inout SeededGenerator) -> [UInt8] {
    if Int.random(in: 0..<4, using: &random) == 0 {
      return (0..<Int.random(in: 0..<300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
    }
    let line = Lines.on("like", "ann", "bob", "p", id: "1")
    var bytes = Array((Bool.random(using: &random) ? line : #"{"actor":"ann","target":"bob"}"#).utf8)
    for _ in 0..<Int.random(in: 1..<4, using: &random) {
      let place = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0..<3, using: &random) {
      case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
      case 1: bytes.remove(at: place)
      default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
      }
    }
    return bytes
  }

  private static func reason(_ record: ProducerRecord) -> String? {
    var decoder = EventDecoder()
    decoder.begin()
    for header in record.headers {
      let (name, text) = (Array(header.name.utf8), header.value ?? [])
      decoder.header(name: name.span, value: text.span)
    }
    let value = record.value ?? []
    do {
      _ = try decoder.decode(value: value.span)
      return nil
    } catch {
      return error.reason.rawValue
    }
  }
}
