import FanoutWorker
import Kafka
import SocialEvents
import Testing

@Suite("Dead letters as they lie in the topic")
struct StoredLetterTests {
  private let topics = Topics()

  @Test(
    "ids are a partition and an offset",
    arguments: [
      ("3:17", 3, 17), ("0:0", 0, 0), ("3:", nil, 0), (":3", nil, 0), ("3", nil, 0), ("3:17:1", nil, 0),
      ("-1:5", nil, 0),
      ("1:-5", nil, 0), ("a:b", nil, 0), ("9999999999:1", nil, 0), ("1:9223372036854775807", nil, 0), ("", nil, 0),
    ] as [(String, Int32?, Int64)])
  func ids(text: String, partition: Int32?, offset: Int64) {
    let id = LetterID(text)
    #expect(id?.partition == partition)
    if let id {
      #expect(id.offset == offset)
      #expect(id.description == text)
    }
  }

  @Test("what the worker writes is read back")
  func ownHeaders() throws {
    let original = [Header("a", "1"), Header(name: "b", value: nil), Header("a", "2")]
    let added = [
      Header("fanout.dlq.reason", "refused"), Header("fanout.dlq.message", "not this one"),
      Header("fanout.dlq.topic", "social.likes"), Header("fanout.dlq.partition", "2"),
      Header("fanout.dlq.offset", "991"),
      Header("fanout.dlq.timestamp", "1714557600123"), Header("fanout.dlq.attempt", "1"),
      Header("fanout.dlq.group", "g"),
    ]
    let letter = stored(original + added, key: [1], value: [2, 3])
    #expect(letter.reason == "refused")
    #expect(letter.origin.message == "not this one")
    #expect(letter.origin.topic == "social.likes" && letter.origin.partition == 2 && letter.origin.offset == 991)
    #expect(letter.origin.timestampMilliseconds == 1_714_557_600_123)
    #expect(letter.origin.attempt == 1 && letter.origin.group == "g")
    let back = try record(letter.wayBack(to: topics, maxRedrives: 3))
    #expect(back.topic == "social.likes" && back.key == [1] && back.value == [2, 3] && back.partition == nil)
    #expect(back.timestamp == 1_714_557_600_123)
    let expected = [
      Header("a", "1"), Header(name: "b", value: nil), Header("a", "2"), Header("fanout.redrive.count", "1"),
    ]
    #expect(back.headers == expected)

    let stub = stored(added + [Header("fanout.dlq.size", "100000"), Header("fanout.dlq.sha256", "ab")])
    #expect(stub.origin.isStub && !letter.origin.isStub)
    let reason = try left(stub.wayBack(to: topics, maxRedrives: 3))
    #expect(reason.contains("social.likes[2] at offset 991"), "\(reason)")
  }

  @Test("a record goes back as often as is allowed, and no further")
  func loopGuard() throws {
    var headers = [Header("fanout.dlq.topic", "social.likes"), Header("fanout.dlq.reason", "refused")]
    for round in 1...3 {
      let back = try record(stored(headers).wayBack(to: topics, maxRedrives: 3))
      #expect(back.headers == [Header("fanout.redrive.count", "\(round)")], "one header, not one a round")
      headers = back.headers + [Header("fanout.dlq.topic", "social.likes")]
    }
    #expect(try left(stored(headers).wayBack(to: topics, maxRedrives: 3)).contains("3 times"))
    _ = try record(stored(headers).wayBack(to: topics, maxRedrives: 4))
  }

  @Test(
    "nothing goes to a topic that is none of events or tasks", arguments: [nil, "payments", "social.dead-letters", ""])
  func foreignTopic(topic: String?) throws {
    let headers = [Header("fanout.dlq.reason", "refused")] + (topic.map { [Header("fanout.dlq.topic", $0)] } ?? [])
    _ = try left(stored(headers).wayBack(to: topics, maxRedrives: 3))
  }

  @Test("headers of Connect and of Spring are read and taken off")
  func foreignHeaders() throws {
    let connect = stored([
      Header("ce_id", "1"), Header("__connect.errors.topic", "social.posts"),
      Header("__connect.errors.partition", "3"), Header("__connect.errors.offset", "12"),
      Header("__connect.errors.exception.class.name", "org.apache.kafka.connect.errors.DataException"),
    ])
    #expect(connect.reason == "org.apache.kafka.connect.errors.DataException")
    #expect(connect.origin.partition == 3 && connect.origin.offset == 12)
    let fromConnect = try record(connect.wayBack(to: topics, maxRedrives: 3))
    #expect(fromConnect.headers == [Header("ce_id", "1"), Header("fanout.redrive.count", "1")])
    #expect(fromConnect.timestamp == 77, "the letter's own")

    let spring = stored([
      Header("kafka_dlt-original-topic", "social.likes"),
      Header(name: "kafka_dlt-original-partition", value: [0, 0, 0, 5]),
      Header(name: "kafka_dlt-original-offset", value: [0, 0, 0, 0, 0, 0, 1, 2]),
      Header(name: "kafka_dlt-original-timestamp", value: [0, 0, 1, 0x8F, 0x3A, 0, 0, 0]), Header("ce_id", "1"),
      Header("kafka_dlt-exception-fqcn", "java.lang.IllegalStateException"),
    ])
    #expect(spring.reason == "java.lang.IllegalStateException")
    #expect(spring.origin.partition == 5 && spring.origin.offset == 258)
    let fromSpring = try record(spring.wayBack(to: topics, maxRedrives: 3))
    #expect(fromSpring.topic == "social.likes" && fromSpring.timestamp == 0x18F_3A00_0000)
    #expect(fromSpring.headers == [Header("ce_id", "1"), Header("fanout.redrive.count", "1")])
  }

  @Test("headers that are missing, null, empty, binary or huge do no harm", arguments: 0..<200)
  func oddHeaders(seed: Int) {
    var random = Generator(state: UInt64(seed))
    let names = [
      "fanout.dlq.reason", "fanout.dlq.message", "fanout.dlq.topic", "fanout.dlq.partition", "fanout.dlq.offset",
      "fanout.dlq.timestamp", "fanout.dlq.attempt", "fanout.dlq.size", "fanout.dlq.sha256", "fanout.redrive.count",
      "__connect.errors.offset", "kafka_dlt-original-offset", "kafka_dlt-original-partition", "", "\u{1B}", "ce_id",
    ]
    let values: [[UInt8]?] = [
      nil, [], [0xFF], Array("-1".utf8), Array("9223372036854775807".utf8), Array("9223372036854775808".utf8),
      Array("social.likes".utf8), Array(repeating: 0xFF, count: 8), [0xFF, 0xFF, 0xFF, 0xFF], Array(" 1".utf8),
    ]
    let headers = (0..<Int.random(in: 0..<12, using: &random)).map { _ in
      Header(name: names.randomElement(using: &random) ?? "", value: values.randomElement(using: &random) ?? nil)
    }
    let letter = stored(headers, value: [0xFF])
    for number in [
      letter.origin.partition, letter.origin.offset, letter.origin.timestampMilliseconds, letter.origin.size,
    ] {
      #expect(number ?? 0 >= 0)
    }
    #expect(letter.redriveCount >= 0)
    _ = letter.decoded()
    if case .back(let back) = letter.wayBack(to: topics, maxRedrives: 3) {
      #expect(back.topic == "social.likes")
      #expect(back.headers.count { $0.name == "fanout.redrive.count" } == 1)
    }
  }

  @Test("decodes by the headers that the record came with")
  func decodes() throws {
    let value = Array(
      #"{"specversion":"1.0","id":"1","source":"/t","type":"follow","time":"2024-05-01T10:00:00Z","data":{"actor":"a","target":"b"}}"#
        .utf8)
    #expect(try stored([Header("fanout.dlq.reason", "refused")], value: value).decoded()?.get().id.string == "1")
    let invalid = stored([Header("fanout.dlq.reason", "refused"), Header("ce_id", "1")], value: [0x7B])
    #expect(throws: InvalidEvent.self) { try invalid.decoded()?.get() }
    #expect(stored([], value: nil).decoded() == nil)
  }

  @Test("a filter takes what it says")
  func filters() {
    let letter = stored([Header("fanout.dlq.reason", "refused"), Header("fanout.dlq.topic", "social.likes")])
    func takes(_ change: (inout LetterFilter) -> Void) -> Bool {
      var filter = LetterFilter()
      change(&filter)
      return filter.takes(letter)
    }
    #expect(takes { _ in })
    #expect(takes { $0.reasons = ["refused", "not-json"] } && !takes { $0.reasons = ["not-json"] })
    #expect(takes { $0.topics = ["social.likes"] } && !takes { $0.topics = ["social.posts"] })
    #expect(takes { $0.from = 77 } && !takes { $0.from = 78 })
    #expect(takes { $0.before = 78 } && !takes { $0.before = 77 })
  }

  // MARK: Making letters

  private func stored(_ headers: [Header], key: [UInt8]? = nil, value: [UInt8]? = []) -> StoredLetter {
    StoredLetter(
      OwnedRecord(
        partition: TopicPartition(topic: topics.deadLetters, partition: 0), offset: 5, timestampMilliseconds: 77,
        key: key,
        value: value, headers: headers))
  }

  private func record(_ way: StoredLetter.Way) throws -> ProducerRecord {
    guard case .back(let record) = way else { throw Unexpected(way: "\(way)") }
    return record
  }

  private func left(_ way: StoredLetter.Way) throws -> String {
    guard case .left(let reason) = way else { throw Unexpected(way: "\(way)") }
    return reason
  }
}

private struct Unexpected: Error {
  let way: String
}
