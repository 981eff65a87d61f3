import Foundation
import Kafka
import SQLiteStore
import SocialEvents
import Testing

@Suite("dead-letters redrive and discard (SPEC 8)", .crowded)
struct RedriveTests {
  @Test(
    "records go back as they were: key, value, headers in their order, timestamp", arguments: BrokerKind.available)
  func exact(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let topics = deployment.topics
    let invalid = InvalidRecords(topics: topics).all
    let sent = invalid.enumerated().map { number, entry in
      var record = entry.record
      record.timestamp = 1_714_557_600_000 + Int64(number)
      return record
    }
    try deployment.send(sent)
    try await deployment.catchUp()
    // What no worker writes: a null value, and headers that a redrive adds itself.
    let odd = deployment.deadLetter(
      "refused", from: topics.name(of: .seen), key: nil, value: nil,
      headers: [
        Header("case", "null"), Header("z", "1"), Header("a", "2"), Header(name: "z", value: nil),
        Header(name: "z", value: []),
        Header(name: "", value: [0xFF, 0]), Header("fanout.redrive.count", "1"),
      ])
    try deployment.send([odd])

    let result = try await deployment.run(["dead-letters", "redrive", "--all"])
    #expect(result.output.hasPrefix("redrove \(sent.count + 1) dead letters"), "\(result.output)")
    let records = try deployment.records(of: topics.events + [topics.tasks])
    #expect(records.count == 2 * sent.count + 1)
    for record in sent {
      let name = record.headers.last { $0.name == "case" }?.value
      let found = records.filter { $0.headers.contains { $0.name == "case" && $0.value == name } }
      let about = Comment(rawValue: String(decoding: name ?? [], as: UTF8.self))
      #expect(found.count == 2, about)
      guard let back = found.first(where: { $0.header("fanout.redrive.count") != nil }) else {
        Issue.record("not sent back: \(about)")
        continue
      }
      #expect(back.partition.topic == record.topic, about)
      #expect(back.key == record.key && back.value == record.value, about)
      #expect(back.headers == record.headers + [Header("fanout.redrive.count", "1")], about)
      #expect(back.timestampMilliseconds == record.timestamp, about)
    }
    let back = try #require(records.first { $0.header("case") == "null" })
    #expect(back.key == nil && back.value == nil && back.partition.topic == topics.name(of: .seen))
    #expect(back.headers == odd.headers.prefix(6) + [Header("fanout.redrive.count", "2")])
    #expect(back.timestampMilliseconds == 1_714_557_600_123)
    #expect(try await deployment.listedLetters().isEmpty)
    #expect(try await deployment.listedLetters(["--settled"]).count == sent.count + 1)
  }

  @Test("a letter whose cause was mended is applied, by its id or among all", arguments: BrokerKind.available)
  func mended(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    try await deployment.run(["migrate"])
    let database = try Connection(path: deployment.store.path, access: .readWrite)
    try database.execute(
      """
      CREATE TRIGGER refuse BEFORE INSERT ON edge WHEN NEW.actor_id IN ('u3', 'u13') BEGIN
        SELECT RAISE(ABORT, 'not this one');
      END
      """)
    try await deployment.emit(lines: (0..<20).map { Lines.follow("u\($0)", "x", id: "\($0)") }.joinedLines)
    #expect(try await deployment.catchUp().deadLetters == 2)
    try database.execute("DROP TRIGGER refuse")
    let before = try deployment.committed()
    let ids = try await deployment.letterIDs()
    #expect(ids.count == 2)
    #expect(try await deployment.run(["dead-letters", "redrive", ids[0]]).output.hasPrefix("redrove 1 dead letter: "))
    #expect(try await deployment.letterIDs() == [ids[1]])
    try await deployment.run(["dead-letters", "redrive", "--reason", "refused", "--topic", "follows"])
    #expect(try await deployment.letterIDs().isEmpty)
    #expect(try deployment.committed() == before, "the workers' offsets are theirs")
    let report = try await deployment.catchUp()
    #expect(report.events == 2 && report.deadLetters == 0)
    let edges = try await deployment.dump().filter { $0.hasPrefix(#"{"view":"edge""#) }.map(String.init)
    #expect(edges == (0..<20).map { Lines.followEdge("u\($0)", "x") }.sorted())
  }

  @Test("a record that fails again and again is sent back as often as is allowed", arguments: BrokerKind.available)
  func loopGuard(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let likes = deployment.topics.name(of: .likes)
    try deployment.send([
      ProducerRecord(topic: likes, key: [1], value: Array("nonsense".utf8), headers: [Header("a", "b")])
    ])
    for round in 1...3 {
      #expect(try await deployment.catchUp().deadLetters == 1)
      let letter = try #require(try await deployment.listedLetters().first)
      #expect(letter["attempt"] as? Int == round && letter["redrives"] as? Int == round - 1)
      let limit = round < 3 ? [] : ["--max-redrives", "3"]
      try await deployment.run(["dead-letters", "redrive", "--all"] + limit)
    }
    try await deployment.catchUp()
    let before = try deployment.kafkaState()
    let result = try await deployment.run(["dead-letters", "redrive", "--all"], expecting: 1)
    #expect(result.output.hasPrefix("redrove 0 dead letters; 1 left"), "\(result.output)")
    #expect(result.error.contains("3 times already"), "\(result.error)")
    #expect(try deployment.kafkaState().filter { $0.key.hasPrefix("end") } == before.filter { $0.key.hasPrefix("end") })
    #expect(try await deployment.letterIDs().count == 1, "it stays open")
    try await deployment.run(["dead-letters", "redrive", "--all", "--max-redrives", "4"])
    let records = try deployment.records(of: [likes])
    #expect(records.count == 5)
    #expect(records.map { $0.headers.filter { $0.name == "fanout.redrive.count" }.count }.sorted() == [0, 1, 1, 1, 1])
  }

  @Test("stubs, letters without an origin and from elsewhere stay, with the reason", arguments: BrokerKind.available)
  func left(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind, partitions: 1)
    let likes = deployment.topics.name(of: .likes)
    try deployment.send([
      deployment.deadLetter("too-large", from: likes, value: [], headers: [Header("fanout.dlq.size", "70000")]),
      deployment.deadFollow("ann"),
      deployment.deadLetter("not-json", from: "payments", value: [1]),
      ProducerRecord(topic: deployment.topics.deadLetters, value: [2]),
    ])
    for _ in 0..<2 {
      let result = try await deployment.run(["dead-letters", "redrive", "--all"], expecting: 1)
      #expect(result.output.contains("3 left"), "\(result.output)")
      #expect(
        result.error.contains("left 0:0: ") && result.error.contains("\(likes)[0] at offset 7"), "\(result.error)")
      #expect(result.error.contains("payments") && result.error.contains("no header says"), "\(result.error)")
      #expect(try deployment.followers() == ["ann"], "once")
      #expect(try await Set(deployment.letterIDs()) == ["0:0", "0:2", "0:3"])
    }
  }

  @Test(
    "a record that Kafka does not take stays, and the others go", .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func refusedByKafka() async throws {
    let deployment = try await Deployment.start(on: .kafka, partitions: 1, createsTopics: false)
    let follows = deployment.topics.name(of: .follows)
    _ = try Admin.createTopics(
      [
        Admin.TopicSpec(
          name: follows, partitions: 1, replicationFactor: 1, configuration: ["max.message.bytes": "5000"])
      ],
      with: deployment.client)
    try await deployment.run(["topics", "create", "--partitions", "1", "--replication-factor", "1"])
    var noise = Noise(state: 3)
    let large = deployment.deadLetter("refused", from: follows, value: (0..<50_000).map { _ in noise.byte() })
    try deployment.send([deployment.deadFollow("ann"), large, deployment.deadFollow("bob")])
    let result = try await deployment.run(["dead-letters", "redrive", "--all"], expecting: 1)
    #expect(result.error.contains("left 0:1: Kafka does not take it"), "\(result.error)")
    #expect(try Set(deployment.followers()) == ["ann", "bob"])
    #expect(try await deployment.letterIDs() == ["0:1"])
  }

  @Test("a dry run tells, and changes nothing", arguments: BrokerKind.available)
  func dryRun(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    try deployment.send((0..<10).map { deployment.deadFollow("u\($0)", $0 < 4 ? "refused" : "not-json") })
    let before = try deployment.kafkaState()
    let redrive = try await deployment.run(["dead-letters", "redrive", "--dry-run", "--reason", "refused"])
    #expect(redrive.output == "would redrive 4 dead letters: 4 to \(deployment.topics.name(of: .follows))\n")
    let discard = try await deployment.run(["dead-letters", "discard", "--dry-run", "--all"])
    #expect(discard.output == "would discard 10 dead letters (6 not-json, 4 refused)\n")
    _ = try await deployment.listedLetters()
    try await deployment.run(["dead-letters", "show"] + Array(deployment.letterIDs().prefix(2)))
    #expect(try deployment.kafkaState() == before)
    try await deployment.run(["dead-letters", "redrive", "--all"])
    #expect(try deployment.kafkaState() != before, "else this proves nothing")
  }

  @Test("filters pass over nothing: what one leaves, the next one takes, each once", arguments: BrokerKind.available)
  func filters(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let reasons = ["not-json", "refused", "self-follow"]
    try deployment.send((0..<90).map { deployment.deadFollow("u\($0)", reasons[$0 % 3]) })
    let ids = try await deployment.letterIDs(["--reason", "self-follow"])
    for (options, expected) in [
      (["--reason", "refused"], 30), (["--reason", "refused"], 0), (Array(ids.prefix(7)), 7),
      (["--reason", "self-follow,refused"], 23), (["--all"], 30), (["--all"], 0), (Array(ids.prefix(2)), 2),
    ] {
      let result = try await deployment.run(["dead-letters", "redrive"] + options)
      #expect(result.output.hasPrefix("redrove \(expected) dead letter"), "\(options): \(result.output)")
    }
    let followers = try deployment.followers()
    #expect(Set(followers).count == 90 && followers.count == 92, "two of them were asked for once more by their ids")
    // What comes later is open.
    try deployment.send([deployment.deadFollow("late")])
    #expect(try await deployment.letterIDs().count == 1)
  }

  @Test(
    "killed in the middle and begun again, every letter is sent, and nearly none twice", arguments: BrokerKind.available
  )
  func killed(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let count = 600
    try deployment.send((0..<count).map { deployment.deadFollow("u\($0)", $0 % 50 == 0 ? "not-json" : "refused") })
    try await deployment.run(["dead-letters", "redrive", "--reason", "not-json"])
    #expect(try deployment.followers().count == 12)
    let redrive = try deployment.start(["dead-letters", "redrive", "--all", "--rate", "40"])
    try await eventually("some are noted as redriven", else: redrive.report) {
      #expect(redrive.isRunning, "\(redrive.report)")
      return try await deployment.listedLetters().count < 500
    }
    redrive.kill()
    let sent = try deployment.followers().count
    #expect(sent < count, "it was killed in the middle")
    let again = try await deployment.run(["dead-letters", "redrive", "--all"])
    let followers = try deployment.followers()
    #expect(Set(followers) == Set((0..<count).map { "u\($0)" }), "none is lost")
    #expect(followers.count < count + 400, "it went on, and did not begin anew: \(again.output)")
    #expect(try await deployment.letterIDs().isEmpty)
    try await deployment.catchUp()
    #expect(deployment.store.registerCount() == count)
  }

  @Test(
    "SIGTERM ends it after the letters at hand, all noted, and it goes on from there", arguments: BrokerKind.available)
  func stopped(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    try deployment.send((0..<300).map { deployment.deadFollow("u\($0)") })
    let redrive = try deployment.start(["dead-letters", "redrive", "--all", "--rate", "50"])
    try await eventually("some are sent", else: redrive.report) { try deployment.followers().count > 20 }
    redrive.signal(SIGTERM)
    #expect(try await redrive.end() == 1)
    #expect(redrive.standardError.contains("begin again"), "\(redrive.report)")
    let sent = try deployment.followers().count
    #expect(sent < 300)
    #expect(try await deployment.letterIDs().count == 300 - sent)
    try await deployment.run(["dead-letters", "redrive", "--all"])
    #expect(try deployment.followers().count == 300, "each once")
  }

  @Test("--rate keeps to its rate, and progress is told with the time that is left", arguments: [BrokerKind.embedded])
  func rate(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    try deployment.send((0..<120).map { deployment.deadFollow("u\($0)") })
    let began = ContinuousClock.now
    let result = try await deployment.run(["dead-letters", "redrive", "--all", "--rate", "40"])
    #expect(ContinuousClock.now - began > .milliseconds(2800))
    #expect(result.output.hasPrefix("redrove 120"))
    #expect(result.error.contains(" s left") && result.error.contains("of 120 offsets (100 %)"), "\(result.error)")
  }

  @Test("discarded letters are neither listed nor redriven, except by their ids", arguments: BrokerKind.available)
  func discard(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind, partitions: 2)
    try deployment.send(
      (0..<20).map { deployment.deadFollow("u\($0)", $0 < 5 ? "not-json" : "refused", partition: Int32($0 % 2)) })
    let unasked = try await deployment.run(["dead-letters", "discard", "--all"], expecting: 2)
    #expect(unasked.error.contains("--yes"), "\(unasked.error)")
    #expect(try await deployment.letterIDs().count == 20)
    // u3, and u0, u1, u2 and u4.
    try await deployment.run(["dead-letters", "discard", "1:1", "--yes"])
    let discarded = try await deployment.run(["dead-letters", "discard", "--reason", "not-json", "--yes"])
    #expect(discarded.output == "discarded 4 dead letters (4 not-json)\n")
    let list = try await deployment.run(["dead-letters", "list", "--histogram"])
    #expect(list.output == "refused\t15\n")
    #expect(list.error.contains("0 redriven and 5 discarded"), "\(list.error)")
    // In both partitions the first letters are among them, so their number is what the group lags less.
    let lag = try deployment.kafkaState().filter { $0.key.hasPrefix("fanout-redrive") }.values.reduce(0, +)
    #expect(lag == 5, "what is discarded is dealt with")
    try await deployment.run(["dead-letters", "redrive", "--all"])
    #expect(try Set(deployment.followers()) == Set((5..<20).map { "u\($0)" }))
    let settled = try await deployment.listedLetters(["--settled"])
    #expect(settled.count { $0["state"] as? String == "discarded" } == 5)
    #expect(settled.count { $0["state"] as? String == "redriven" } == 15)
    try await deployment.run(["dead-letters", "redrive", "1:1"])
    #expect(try deployment.followers().contains("u3"))
    let missing = try await deployment.run(["dead-letters", "discard", "0:99", "--yes"], expecting: 1)
    #expect(missing.error.contains("0:99"), "\(missing.error)")
    #expect(
      try await deployment.run(["dead-letters", "discard", "--all", "--yes"]).output == "discarded 0 dead letters\n")
  }

  @Test("what was last done with a letter is what is told of it", arguments: BrokerKind.available)
  func lastWord(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind, partitions: 1)
    try deployment.send((0..<6).map { deployment.deadFollow("u\($0)") })
    func states() async throws -> [String: String] {
      let letters = try await deployment.listedLetters(["--settled"])
      return Dictionary(
        uniqueKeysWithValues: letters.map { ($0["id"] as? String ?? "", $0["state"] as? String ?? "") })
    }
    // Among open ones, and then among others that are settled.
    for others in [[], ["0:0", "0:2", "0:3"]] {
      if !others.isEmpty { try await deployment.run(["dead-letters", "discard", "--yes"] + others) }
      try await deployment.run(["dead-letters", "discard", "0:1", "0:4", "--yes"])
      #expect(try await states()["0:1"] == "discarded")
      try await deployment.run(["dead-letters", "redrive", "0:1"])
      #expect(try await states()["0:1"] == "redriven")
      #expect(try await states()["0:4"] == "discarded", "a redrive leaves the others as they are")
    }
    #expect(try await states()["0:5"] == "open")
    #expect(try await deployment.run(["dead-letters", "show", "0:1"]).output.hasPrefix("dead letter 0:1, redriven"))
  }

  @Test(
    "where Kafka has no room for all notes, nothing is told that is not so, and the warning says what is told",
    arguments: BrokerKind.available)
  func noRoomForNotes(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind, partitions: 1)
    let count = 12_000
    try deployment.send(
      (0..<count).map { deployment.deadFollow("u\($0)", $0 % 2 == 0 ? "not-json" : "missing-member") })
    func states() async throws -> [String: [Int]] {
      let letters = try await deployment.listedLetters(["--settled"])
      return Dictionary(grouping: letters) { $0["state"] as? String ?? "" }
        .mapValues { $0.compactMap { ($0["id"] as? String).flatMap { Int($0.dropFirst(2)) } } }
    }
    /// How many the warning says are in a state.
    func warned(_ result: Fanout.Result, _ state: String) -> Int? {
      result.error.split(separator: "\n").first { $0.contains("listed as \(state) from now on") }
        .flatMap { Int($0.dropFirst("fanout: partition 0: ".count).prefix { $0 != " " }.filter(\.isNumber)) }
    }

    let redrive = try await deployment.run(["dead-letters", "redrive", "--reason", "not-json"])
    #expect(redrive.output.hasPrefix("redrove 6,000 "), "\(redrive.output)")
    let first = try await states()
    let before = first["settled"] ?? []
    let sent = Set((first["redriven"] ?? []) + before)
    #expect(!sent.isEmpty && sent.allSatisfy { $0 % 2 == 0 })
    let open = first["open"]?.count { $0 % 2 == 0 }
    #expect(
      open != 0 && warned(redrive, "open") == open && warned(redrive, "settled") == before.count, "\(redrive.error)")

    let discard = try await deployment.run(["dead-letters", "discard", "--all", "--yes"])
    #expect(discard.output.hasPrefix("discarded \(grouped(count - sent.count)) "), "\(discard.output)")
    var then = try await states()
    #expect(then["open"] == nil)
    #expect(then["redriven"]?.allSatisfy { sent.contains($0) } ?? true, "never what was not sent")
    #expect(then["discarded"]?.allSatisfy { !sent.contains($0) } == true)
    #expect(warned(discard, "settled") == (then["settled"]?.count ?? 0) - before.count, "\(discard.error)")
    #expect(warned(discard, "open") == nil, "\(discard.error)")
    let list = try await deployment.run(["dead-letters", "list"])
    #expect(list.error.contains(" and \(grouped(then["settled"]?.count ?? 0)) either not shown)"), "\(list.error)")
    #expect(try await deployment.run(["dead-letters", "show", "0:1"]).output.hasPrefix("dead letter 0:1, settled"))

    // What comes later is told exactly again, and a single discard of one is no exception.
    try deployment.send((0..<2).map { deployment.deadFollow("late\($0)") })
    try await deployment.run(["dead-letters", "redrive", "0:\(count)"])
    try await deployment.run(["dead-letters", "discard", "0:\(count + 1)", "--yes"])
    then = try await states()
    #expect(then["redriven"]?.contains(count) == true && then["discarded"]?.contains(count + 1) == true)
    #expect(then["open"] == nil)
  }

  @Test(
    "letters whose topic is gone stay, told once, and those of others go",
    .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func missingTopic() async throws {
    let deployment = try await Deployment.start(on: .kafka, partitions: 1, createsTopics: false)
    let topics = deployment.topics
    // All but the likes.
    let specs = (topics.all).filter { $0 != topics.name(of: .likes) }.map {
      Admin.TopicSpec(name: $0, partitions: 1, replicationFactor: 1, configuration: [:])
    }
    _ = try Admin.createTopics(specs, with: deployment.client)
    let like = deployment.deadLetter("refused", from: topics.name(of: .likes), value: [1])
    // In several batches, so that it is not only the first that goes on.
    try deployment.send(
      (0..<1500).flatMap { $0 % 3 == 0 ? [like] : [deployment.deadFollow("u\($0)")] })
    for expected in [1000, 0] {
      let result = try await deployment.run(["dead-letters", "redrive", "--all"], expecting: 1)
      #expect(result.output.hasPrefix("redrove \(grouped(expected)) dead letters"), "\(result.output)")
      #expect(result.output.hasSuffix("; 500 left\n"), "\(result.output)")
      let told = result.error.split(separator: "\n").filter { $0.hasPrefix("left ") }
      #expect(told.count == 1 && told[0].hasPrefix("left 500 letters from \(topics.name(of: .likes)): "), "\(told)")
      #expect(try await deployment.letterIDs().count == 500)
    }
    try await deployment.run(["topics", "create", "--partitions", "1", "--replication-factor", "1"])
    try await deployment.run(["dead-letters", "redrive", "--all"])
    #expect(try deployment.records(of: [topics.name(of: .likes)]).count == 500)
    #expect(try deployment.followers().count == 1000, "each once")
  }

  @Test(
    "a count of redrives that the publisher made up keeps its letter back, until --max-redrives lets it through",
    arguments: BrokerKind.available)
  func madeUpCount(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let likes = deployment.topics.name(of: .likes)
    let counts = ["3", "1000000", "2000000", "99999999999999999999", "-5", "\u{1B}"]
    try deployment.send(
      counts.map { ProducerRecord(topic: likes, value: [1], headers: [Header("fanout.redrive.count", $0)]) })
    #expect(try await deployment.catchUp().deadLetters == counts.count)
    let result = try await deployment.run(["dead-letters", "redrive", "--all"], expecting: 1)
    #expect(result.output.hasSuffix("; 3 left\n"), "\(result.output)")
    #expect(result.error.contains("--max-redrives 4 ") && result.error.contains("--max-redrives 1000001 "))
    let forced = try await deployment.run(["dead-letters", "redrive", "--all", "--max-redrives", "1000001"])
    #expect(forced.output.hasPrefix("redrove 3 "), "\(forced.output)")
    #expect(try deployment.records(of: [likes]).count == 2 * counts.count)
  }

  @Test(
    "the group's position passes what transactions left between the letters",
    .enabled(if: KafkaTool.isPresent, KafkaTool.missing))
  func transactionMarkers() async throws {
    let deployment = try await Deployment.start(on: .kafka, partitions: 1)
    let payload = try deployment.folder.write("payload.txt", "one\ntwo\n")
    try await KafkaTool.run([
      "producer-perf-test", "--topic", deployment.topics.deadLetters, "--num-records", "40", "--throughput", "-1",
      "--payload-file", payload, "--producer-props", "bootstrap.servers=\(deployment.brokers)", "--transactional-id",
      deployment.group, "--transaction-duration-ms", "50",
    ])
    try deployment.send([deployment.deadFollow("ann")])
    try await deployment.run(["dead-letters", "discard", "--reason", "unknown", "--yes"])
    try await deployment.run(["dead-letters", "redrive", "--all"])
    #expect(try deployment.followers() == ["ann"])
    let state = try deployment.kafkaState()
    let letters = TopicPartition(topic: deployment.topics.deadLetters, partition: 0)
    let position = state.first { $0.key.hasPrefix("fanout-redrive \(letters) ") }?.value
    #expect(position != nil && position == state["end \(letters)"], "\(state)")
  }
}

/// As the commands write numbers.
private func grouped(_ number: Int) -> String {
  number < 1000 ? "\(number)" : "\(number / 1000)," + "\(1000 + number % 1000)".dropFirst()
}
