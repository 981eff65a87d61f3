import Kafka
import SocialEvents

/// A record that can't be applied, and the reason that must be given for it (SPEC 2).
struct InvalidRecord: Sendable {
  let name: String
  /// The value of the header `fanout.dlq.reason`.
  let reason: String
  let record: ProducerRecord
}

/// One record, or several, for every rule of SPEC 2.
struct InvalidRecords {
  let topics: Topics
  private(set) var all: [InvalidRecord] = []

  init(topics: Topics) {
    self.topics = topics
    addBytesAndJSON()
    addMembers()
    addIdentifiers()
    addSizes()
    addTimes()
    addModes()
    addTasks()
  }

  // MARK: Rules

  private mutating func addBytesAndJSON() {
    binary("not UTF-8", "not-json", bytes: Array(#"{"actor":"a"#.utf8) + [0xFF] + Array(#"","target":"b"}"#.utf8))
    binary(
      "overlong UTF-8", "not-json", bytes: Array(#"{"actor":""#.utf8) + [0xC0, 0xAF] + Array(#"","target":"b"}"#.utf8))
    binary("not JSON", "not-json", "hello")
    binary("empty, which is not a tombstone", "not-json", "")
    binary("only white space", "not-json", " \n")
    binary("truncated", "not-json", #"{"actor":"a","targ"#)
    binary("two objects", "not-json", #"{"actor":"a","target":"b"}{}"#)
    binary("an array", "not-json", #"[{"actor":"a","target":"b"}]"#)
    binary("a string", "not-json", #""a""#)
    binary("a high surrogate alone", "not-json", #"{"actor":"\ud83d","target":"b"}"#)
    binary("a low surrogate alone", "not-json", #"{"actor":"\ude00","target":"b"}"#)
    binary(
      "a surrogate as UTF-8", "not-json",
      bytes: Array(#"{"actor":""#.utf8) + [0xED, 0xA0, 0x80] + Array(#"","target":"b"}"#.utf8))
    binary("a raw NUL", "not-json", bytes: Array(#"{"actor":"a"#.utf8) + [0] + Array(#"","target":"b"}"#.utf8))
    let deep = String(repeating: "[", count: 20_000) + String(repeating: "]", count: 20_000)
    binary("nested deeply", "not-json", #"{"actor":"a","target":"b","more":\#(deep)}"#)
    binary("bad where nobody looks", "not-json", #"{"actor":"a","target":"b","more":01}"#)
    structured("structured and truncated", "not-json", #"{"specversion":"1.0","id":"1""#)
    structured("structured and not UTF-8", "not-json", bytes: [0xFE, 0xFF, 0x00, 0x7B])
  }

  private mutating func addMembers() {
    binary("an unknown type", "unknown-type", #"{"actor":"a","target":"b"}"#, ["ce_type": "poke"])
    binary("a type in capitals", "unknown-type", #"{"actor":"a","target":"b"}"#, ["ce_type": "Follow"])
    binary("no target", "missing-member", #"{"actor":"a"}"#)
    binary("no data at all", "missing-member", "{}")
    for name in ["ce_id", "ce_source", "ce_type", "ce_time", "ce_specversion"] {
      binary("no \(name)", "missing-member", #"{"actor":"a","target":"b"}"#, [name: nil])
    }
    binary("a null target", "ill-typed-member", #"{"actor":"a","target":null}"#)
    binary("a target that is a number", "ill-typed-member", #"{"actor":"a","target":5}"#)
    binary("a target that is an object", "ill-typed-member", #"{"actor":"a","target":{}}"#)
    binary("silent as a string", "ill-typed-member", #"{"actor":"a","target":"b","silent":"true"}"#)
    binary("extra as an array", "ill-typed-member", #"{"actor":"a","target":"b","extra":[]}"#)
    binary("specversion 0.3", "ill-typed-member", #"{"actor":"a","target":"b"}"#, ["ce_specversion": "0.3"])
    binary("an empty source", "ill-typed-member", #"{"actor":"a","target":"b"}"#, ["ce_source": ""])
    structured("data as a string", "ill-typed-member", Self.event(data: #""text""#))
    structured("no data", "missing-member", Self.event(data: nil))
    structured("an id that is a number", "ill-typed-member", Self.event(id: "7"))
  }

  private mutating func addIdentifiers() {
    let long = String(repeating: "x", count: 129)
    let rules = [
      ("empty", ""), ("of 129 bytes", long), ("of 65 two-byte letters", String(repeating: "é", count: 65)),
      ("with an escaped control character", #"a\u0007b"#), ("with an escaped NUL", #"\u0000"#),
      ("with a C1 control character", "a\u{85}b"), ("with the separator of keys", #"a\u001fb"#), ("of spaces", "   "),
      ("of a no-break space", "\u{A0}"),
    ]
    for (name, text) in rules {
      binary("an actor \(name)", "invalid-identifier", #"{"actor":"\#(text)","target":"b"}"#)
      binary("a post \(name)", "invalid-identifier", #"{"author":"a","post":"\#(text)"}"#, ["ce_type": "post-deleted"])
    }
    binary("an id of 129 bytes", "invalid-identifier", #"{"actor":"a","target":"b"}"#, ["ce_id": long])
    binary("an empty id", "invalid-identifier", #"{"actor":"a","target":"b"}"#, ["ce_id": ""])
    binary("a follow of oneself", "self-follow", #"{"actor":"é","target":"\u00e9"}"#)
    binary("an unfollow of oneself", "self-follow", #"{"actor":"a","target":"a"}"#, ["ce_type": "unfollow"])
  }

  private mutating func addSizes() {
    let extra = #"{"t":""# + String(repeating: "x", count: 4097 - 8) + #""}"#
    binary("extra of 4,097 bytes", "extra-too-large", #"{"actor":"a","target":"b","extra":\#(extra)}"#)
    binary("a value of 65,537 bytes", "too-large", Self.padded(to: 65_537))
    structured(
      "a structured value of 65,537 bytes", "too-large",
      Self.event() + String(repeating: " ", count: 65_537 - Self.event().utf8.count))
    // Noise does not shrink when it is compressed, so this is as much as brokers take unless they are told otherwise.
    var random = Noise(state: 1)
    binary("a value of nearly 1 MB", "too-large", bytes: (0..<1_000_000).map { _ in random.byte() })
  }

  private mutating func addTimes() {
    let follow = #"{"actor":"a","target":"b"}"#
    binary("a time before 1970", "time-before-1970", follow, ["ce_time": "1969-12-31T23:59:59.999999Z"])
    binary("a time before 1970 by its offset", "time-before-1970", follow, ["ce_time": "1970-01-01T00:30:00+01:00"])
    for time in ["yesterday", "2024-05-01", "2024-02-30T00:00:00Z", "2024-05-01T10:00:00", "1714557600", ""] {
      binary("the time \"\(time)\"", "ill-typed-member", follow, ["ce_time": time])
    }
    binary(
      "publishedAt before 1970", "time-before-1970", #"{"author":"a","post":"p","publishedAt":"1969-01-01T00:00:00Z"}"#,
      ["ce_type": "post-published"])
    binary(
      "upTo before 1970", "time-before-1970", #"{"user":"a","upTo":"1900-01-01T00:00:00Z"}"#,
      ["ce_type": "feedback-seen"])
    binary("upTo as a number", "ill-typed-member", #"{"user":"a","upTo":5}"#, ["ce_type": "feedback-seen"])
  }

  private mutating func addModes() {
    let follow = #"{"actor":"a","target":"b"}"#
    binary("a batch", "ill-typed-member", follow, ["content-type": "application/cloudevents-batch+json"])
    binary("not JSON by its content type", "ill-typed-member", follow, ["content-type": "text/plain"])
    add("no headers, and not an event", "missing-member", Array(follow.utf8), [])
    add("no headers, and no JSON", "not-json", [0x00, 0x01, 0x02], [])
    add(
      "a header that is not UTF-8", "ill-typed-member", Array(follow.utf8),
      Self.headers().map {
        $0.name == "ce_source" ? Header(name: $0.name, value: [0xC3, 0x28]) : $0
      })
    // Dead letters carry these on unchanged.
    add(
      "headers twice, with null and odd values", "self-follow", Array(#"{"actor":"a","target":"a"}"#.utf8),
      Self.headers() + [
        Header("ce_type", "like"), Header(name: "nothing", value: nil), Header(name: "empty", value: []),
        Header(name: "bytes", value: [0, 255, 10]), Header("traceparent", Self.traceparent),
      ])
  }

  private mutating func addTasks() {
    for (name, key) in [
      ("a task without a key", nil), ("a task with a strange key", "hello"),
      ("a task of slice 4 of 4", "a\u{1F}p\u{1F}4\u{1F}4"),
    ] {
      all.append(
        InvalidRecord(
          name: name, reason: "invalid-task",
          record: ProducerRecord(
            topic: topics.tasks, key: key.map { Array($0.utf8) }, value: Array("{}".utf8),
            headers: [Header("case", name)])))
    }
  }

  // MARK: Making records

  static let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

  static func headers(_ changes: [String: String?] = [:]) -> [Header] {
    let standard = [
      ("ce_specversion", "1.0"), ("ce_id", "1"), ("ce_source", "/test"), ("ce_type", "follow"),
      ("ce_time", "2024-05-01T10:00:00Z"), ("content-type", "application/json"),
    ]
    return standard.compactMap { name, value in
      guard let change = changes[name] else { return Header(name, value) }
      return change.map { Header(name, $0) }
    }
  }

  private static func event(id: String = #""1""#, data: String? = #"{"actor":"a","target":"b"}"#) -> String {
    #"{"specversion":"1.0","id":\#(id),"source":"/test","type":"follow","time":"2024-05-01T10:00:00Z""#
      + (data.map { #","data":"# + $0 } ?? "") + "}"
  }

  private static func padded(to count: Int) -> String {
    let text = #"{"actor":"a","target":"b"}"#
    return text + String(repeating: " ", count: count - text.utf8.count)
  }

  private mutating func binary(_ name: String, _ reason: String, _ value: String, _ changes: [String: String?] = [:]) {
    binary(name, reason, bytes: Array(value.utf8), changes)
  }

  private mutating func binary(_ name: String, _ reason: String, bytes: [UInt8], _ changes: [String: String?] = [:]) {
    add(name, reason, bytes, Self.headers(changes))
  }

  private mutating func structured(_ name: String, _ reason: String, _ value: String) {
    structured(name, reason, bytes: Array(value.utf8))
  }

  private mutating func structured(_ name: String, _ reason: String, bytes: [UInt8]) {
    add(name, reason, bytes, [Header("content-type", "application/cloudevents+json; charset=utf-8")])
  }

  private mutating func add(_ name: String, _ reason: String, _ value: [UInt8], _ headers: [Header]) {
    // Keys don't matter to events, so any bytes will do.
    let keys: [[UInt8]?] = [nil, [], [0xFF, 0x00], Array("a\u{1F}b".utf8)]
    let family = Topics.Family.allCases[all.count % Topics.Family.allCases.count]
    all.append(
      InvalidRecord(
        name: name, reason: reason,
        record: ProducerRecord(
          topic: topics.name(of: family), key: keys[all.count % keys.count], value: value,
          headers: headers + [Header("case", name)])))
  }
}

/// Bytes that look random, the same everywhere.
struct Noise {
  var state: UInt64

  mutating func byte() -> UInt8 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return UInt8(truncatingIfNeeded: state >> 56)
  }
}
