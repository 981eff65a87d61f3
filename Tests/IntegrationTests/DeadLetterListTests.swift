import Foundation
import Kafka
import SocialEvents
import Testing

@Suite("dead-letters list and show (SPEC 8)", .crowded)
struct DeadLetterListTests {
  @Test("list counts by reason, and filters by reason, topic and time", arguments: BrokerKind.available)
  func list(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    let (likes, posts) = (deployment.topics.name(of: .likes), deployment.topics.name(of: .posts))
    try deployment.send(
      (0..<5).map { deployment.deadLetter("not-json", from: likes, value: [UInt8($0)], minute: $0) }
        + (5..<8).map { deployment.deadLetter("refused", from: posts, value: [], minute: $0) }
        + [deployment.deadLetter("refused", from: likes, value: nil, minute: 8)]
        + [ProducerRecord(topic: deployment.topics.deadLetters, value: [1], timestamp: 1_714_564_800_000)])

    let histogram = try await deployment.run(["dead-letters", "list", "--histogram"])
    #expect(histogram.output == "not-json\t5\nrefused\t4\nunknown\t1\n")
    let counts = try await deployment.run(["dead-letters", "list", "--histogram", "--json", "--topic", "likes"])
    #expect(counts.output == "{\"reason\":\"not-json\",\"letters\":5}\n{\"reason\":\"refused\",\"letters\":1}\n")

    let all = try await deployment.listedLetters()
    #expect(all.count == 10)
    #expect(Set(all.compactMap { $0["id"] as? String }).count == 10)
    #expect(all.compactMap { $0["since"] as? String } == all.compactMap { $0["since"] as? String }.sorted(by: >))
    for (options, expected) in [
      (["--reason", "not-json"], 5), (["--reason", "not-json,refused"], 9), (["--reason", "nothing"], 0),
      (["--topic", posts], 3), (["--topic", "posts,likes"], 9), (["--topic", "likes", "--reason", "refused"], 1),
      (["--from-time", "2024-05-01T12:06:00Z"], 3), (["--from-time", "2024-05-01T12:06:00.000001Z"], 2),
      (["--to-time", "2024-05-01T12:02:00Z"], 3),
      (["--from-time", "2024-05-01T12:02:00Z", "--to-time", "2024-05-01T14:06:00+02:00"], 4),
    ] {
      #expect(try await deployment.listedLetters(options).count == expected, "\(options)")
    }

    let lines = try await deployment.run(["dead-letters", "list", "--limit", "2"])
    #expect(lines.lines.count == 2)
    let fields = lines.lines.first?.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) ?? []
    #expect(fields.count == 8)
    #expect(
      Array(fields.dropFirst()) == ["2024-05-01T12:08:00.000000Z", "open", "refused", likes, "0", "7", "because"])
    #expect(
      lines.error.contains("10 open dead letters") && lines.error.contains("5 not-json, 4 refused"), "\(lines.error)")
    #expect(lines.error.contains("8 older letters"), "\(lines.error)")
  }

  @Test(
    "show decodes what decodes, says why the rest does not, and tells null from empty", arguments: BrokerKind.available)
  func show(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind, partitions: 1)
    let likes = deployment.topics.name(of: .likes)
    let structured = Lines.on("like", "ann", "bob", "p", id: "s")
    try deployment.send([
      deployment.deadFollow("ann"),
      deployment.deadLetter("not-json", from: likes, key: nil, value: Array(structured.utf8)),
      deployment.deadLetter(
        "refused", from: likes, key: [], value: Array(#"{"actor":5}"#.utf8), headers: InvalidRecords.headers()),
      deployment.deadLetter("refused", from: likes, key: [0xFF], value: [0, 0x1B, 0xFF]),
      deployment.deadLetter("refused", from: likes, value: nil),
      deployment.deadLetter(
        "too-large", from: likes, value: [],
        headers: [Header("fanout.dlq.size", "70000"), Header("fanout.dlq.sha256", "ab")]),
    ])
    func shown(_ offset: Int) async throws -> String {
      try await deployment.run(["dead-letters", "show", "0:\(offset)"]).output
    }
    let binary = try await shown(0)
    #expect(
      binary.contains(#""type":"follow""#) && binary.contains(#""data":{"actor":"ann","target":"x"}"#), "\(binary)")
    #expect(binary.contains("follows[0] at offset 7") && binary.contains("2024-05-01T10:00:00.123000Z"), "\(binary)")
    #expect(binary.contains(#"  ann\u{1F}x"#), "\(binary)")
    let other = try await shown(1)
    #expect(other.contains("event, as it decodes now") && other.contains("key: null"), "\(other)")
    let invalid = try await shown(2)
    #expect(
      invalid.contains("no event: ill-typed-member") || invalid.contains("no event: missing-member"), "\(invalid)")
    #expect(invalid.contains("key: 0 bytes") && invalid.contains("reason    refused"), "\(invalid)")
    let bytes = try await shown(3)
    #expect(bytes.contains("00000000  00 1b ff  ") && bytes.contains("00000000  ff  "), "\(bytes)")
    #expect(try await shown(4).contains("value: null"))
    #expect(try await shown(5).contains("value: 70000 bytes, too large"))

    let several = try await deployment.run(["dead-letters", "show", "0:3", "0:1", "--json"])
    let objects = try several.lines.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
    #expect(objects.map { $0["id"] as? String } == ["0:1", "0:3"])
    #expect((objects[0]["event"] as? [String: Any])?["id"] as? String == "s")
    #expect(objects[0]["value"] as? String == structured && objects[0]["key"] is NSNull)
    #expect(objects[1]["valueHex"] as? String == "001bff" && objects[1]["keyHex"] as? String == "ff")

    for (id, said) in [("0:6", "the offsets 0 to 5"), ("7:0", "1 partitions")] {
      let result = try await deployment.run(["dead-letters", "show", id], expecting: 1)
      #expect(result.error.contains(id) && result.error.contains(said), "\(result.error)")
    }
  }

  @Test("no command prints what a terminal could obey, wherever it stands", arguments: BrokerKind.available)
  func terminalEscapes(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind, partitions: 1)
    let hostile = "\u{1B}[2J\u{1B}]0;x\u{7}\r\n\t\u{9B}31m\u{7F}\u{202E}\u{2066}\u{2028}\\"
    let value = "\0" + hostile
    let bytes = Array(hostile.utf8)
    let text = Array(#"{"actor":"\#u{202E}\#u{61C}a","target":"b\#u{2066}"}"#.utf8)
    try deployment.send([
      deployment.deadLetter(
        hostile, from: hostile, key: bytes, value: Array(value.utf8),
        headers: [Header(name: hostile, value: bytes), Header(name: "raw", value: [0x1B, 0xFF])], message: hostile),
      // An event whose users have marks of direction in their names, and a group and a place that are no numbers.
      deployment.deadLetter(
        hostile, from: deployment.topics.name(of: .follows), key: [0x9B, 0x1B], value: text,
        headers: InvalidRecords.headers(["ce_source": hostile]) + [
          Header("fanout.dlq.group", hostile), Header("fanout.dlq.offset", hostile),
          Header("fanout.dlq.size", hostile), Header("traceparent", hostile),
        ]),
      ProducerRecord(
        topic: deployment.topics.deadLetters, value: [],
        headers: [
          Header("fanout.dlq.topic", hostile), Header("fanout.dlq.size", "5"), Header("fanout.dlq.sha256", hostile),
          Header("fanout.dlq.offset", "9223372036854775807"), Header("fanout.dlq.timestamp", "9223372036854775807"),
        ]),
    ])
    let letters = ["0:0", "0:1", "0:2"]
    for command in [
      ["list"], ["list", "--json"], ["list", "--histogram"], ["list", "--histogram", "--json"], ["show"] + letters,
      ["show", "--json"] + letters, ["show", "--full"] + letters, ["redrive", "--dry-run"] + letters,
      ["discard", "--dry-run"] + letters, ["redrive"] + letters, ["discard", "--yes"] + letters,
    ] {
      let result = try await deployment.run(["dead-letters"] + command, expecting: nil)
      #expect(result.status != 2, "\(result.error)")
      #expect(result.output + result.error != "")
      for scalar in (result.output + result.error).unicodeScalars where scalar != "\n" && scalar != "\t" {
        let isBad = [.control, .format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
        if isBad { Issue.record("\(command) prints U+\(String(scalar.value, radix: 16))") }
      }
      if command.contains("--json") {
        for line in result.lines { _ = try JSONSerialization.jsonObject(with: Data(line.utf8)) }
      }
    }
    let plain = try await deployment.run(["dead-letters", "list", "--settled"])
    #expect(plain.lines.count == 3, "a line a letter, whatever is in them: \(plain.output)")
    let whole = try await deployment.run(["dead-letters", "show", "0:0", "--json"])
    let object = try #require(try JSONSerialization.jsonObject(with: Data(whole.output.utf8)) as? [String: Any])
    #expect(object["reason"] as? String == hostile && object["value"] as? String == value)
    let header = try #require((object["headers"] as? [[String: Any]])?.first)
    #expect(header["name"] as? String == hostile && header["value"] as? String == hostile)
  }

  @Test(
    "brokers that can't be reached, and a topic that is missing, are errors that name them",
    arguments: BrokerKind.available)
  func errors(kind: BrokerKind) async throws {
    let folder = try TestFolder()
    for command in [["list"], ["show", "0:0"], ["redrive", "--all"], ["discard", "--all", "--yes"]] {
      let result = try await Fanout.run(
        ["dead-letters"] + command + ["--brokers", "127.0.0.1:9"], in: folder, expecting: 1)
      #expect(result.error.contains("can't reach Kafka at 127.0.0.1:9"), "\(result.error)")
      if kind == .embedded { continue }
      let deployment = try await Deployment.start(on: kind, createsTopics: false)
      let missing = try await deployment.run(["dead-letters"] + command, expecting: 1)
      #expect(missing.error.contains(deployment.topics.deadLetters), "\(missing.error)")
      #expect(missing.error.contains("fanout topics create"), "\(missing.error)")
    }
  }
}
