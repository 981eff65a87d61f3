import SocialEvents
import Testing

/// Binary and structured mode (SPEC 3), and what both leave alone.
struct DecoderModeTests {
  private let expected: Event

  init() throws {
    expected = Event(
      id: try EventID("e1"), source: "/test", time: Timestamp(microseconds: 1_341_360_000_000_000),
      assertion: .present(
        try .follow(actor: UserID("a"), target: UserID("b")), silent: false, extra: nil))
  }

  @Test(
    "binary mode takes any JSON content type, or none",
    arguments: [
      nil, "application/json", "application/json; charset=utf-8", " Application/JSON ;charset=utf-8",
      "application/vnd.example+json", "text/x+JSON",
    ] as [String?])
  func binary(_ contentType: String?) throws {
    let record = Record.binary(#"{"actor":"a","target":"b"}"#, changes: ["Content-Type": contentType])
    #expect(try record.decoded() == expected)
  }

  @Test(
    "structured mode is asked for by the content type, or is what is left without attribute headers",
    arguments: [
      [], [("content-type", "application/cloudevents+json")],
      [("Content-Type", "application/CloudEvents+json; charset=UTF-8")], [("content-type", "application/json")],
      [("other", "x"), ("ce-id", "x"), ("CE_ID", "x"), ("ce_", "x")],
      // The Kafka binding of CloudEvents lets a structured record repeat its attributes in headers.
      [("ce_id", "other"), ("ce_type", "like"), ("content-type", "application/cloudevents+json")],
    ] as [[(String, String)]])
  func structuredMode(_ headers: [(String, String)]) throws {
    let record = Record(headers: headers.map { ($0.0, Array($0.1.utf8)) }, value: structured().utf8)
    #expect(try record.decoded() == expected)
  }

  @Test("without any header an event needs its specversion")
  func needsSpecversion() {
    let record = Record(value: #"{"actor":"a","target":"b"}"#.utf8)
    let error = #expect(throws: InvalidEvent.self) { try record.decoded() }
    #expect(error == InvalidEvent(.missingMember, "specversion is missing"))
  }

  @Test("one attribute header is enough for binary mode")
  func oneHeader() {
    let record = Record(headers: [("ce_subject", [])], value: structured().utf8)
    let error = #expect(throws: InvalidEvent.self) { try record.decoded() }
    #expect(error == InvalidEvent(.missingMember, "specversion is missing"))
  }

  @Test("a null header is an absent header, and of two headers the first one counts")
  func nullAndRepeatedHeaders() throws {
    var record = Record.binary(#"{"actor":"a","target":"b"}"#)
    record.headers.insert(("ce_id", nil), at: 0)
    record.headers.append(("ce_id", Array("second".utf8)))
    record.headers.append(("ce_time", Array("second".utf8)))
    record.headers.append(("content-type", Array("application/json".utf8)))
    record.headers.append(("Content-Type", Array("text/plain".utf8)))
    #expect(try record.decoded() == expected)
    #expect(try Record(headers: [("ce_id", nil)], value: structured().utf8).decoded() == expected)
  }

  @Test("a decoder forgets the record before")
  func reuse() throws {
    var decoder = EventDecoder()
    let first = Record.binary(
      #"{"actor":"a","target":"b"}"#, changes: ["traceparent": "00-1-1-01", "content-type": "text/plain"])
    #expect(throws: InvalidEvent.self) { try first.decoded(by: &decoder) }
    #expect(try Record(value: structured().utf8).decoded(by: &decoder) == expected)
    let bare = Record(headers: [("ce_id", [0x61])], value: "{}".utf8)
    let error = #expect(throws: InvalidEvent.self) { try bare.decoded(by: &decoder) }
    #expect(error?.detail == "specversion is missing")
    #expect(try Record.binary(#"{"actor":"a","target":"b"}"#).decoded(by: &decoder) == expected)
  }

  @Test("attributes that are not ASCII")
  func unicodeAttributes() throws {
    let changes: KeyValuePairs<String, String?> = ["ce_id": "é😀", "ce_source": "/中"]
    let event = try Record.binary(#"{"actor":"a","target":"b"}"#, changes: changes).decoded()
    #expect(event.id.string == "é😀")
    #expect(event.source == "/中")
  }

  // MARK: traceparent

  @Test("a trace context comes from the header or a member, and a bad one is ignored")
  func traceparent() throws {
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    let data = #"{"actor":"a","target":"b","traceparent":"in data"}"#
    #expect(try Record.binary(data, changes: ["traceparent": good]).decoded().traceparent == good)
    let bad = ["", String(repeating: "0", count: 129), "0\n1", "é", "a b", "00-11 22-33-44"]
    for bad in bad {
      #expect(try Record.binary(data, changes: ["traceparent": bad]).decoded().traceparent == nil)
    }
    #expect(try decode(structured(["traceparent": "\"\(good)\""])).traceparent == good)
    #expect(try decode(structured(["traceparent": #""00\u002d1""#])).traceparent == "00-1")
    for bad in ["7", "null", "{}", "\"\"", "\"\(String(repeating: "0", count: 129))\"", #""\n""#] {
      #expect(try decode(structured(["traceparent": bad])).traceparent == nil)
    }
    var record = Record(headers: [("traceparent", Array(good.utf8))], value: structured(["traceparent": "\"x\""]).utf8)
    #expect(try record.decoded().traceparent == good)
    record.headers = [("traceparent", [0xFF])]
    #expect(try record.decoded().traceparent == "x")
  }

  // MARK: JSON

  @Test(
    "members that nobody knows are ignored, at both levels",
    arguments: [
      "0", "-1.5E+300", "1e999", "\"é😀\\ud83d\\ude00\"", "[[],{\"data\":{\"actor\":1}}]", "null", "{\"a\":{}}",
    ])
  func unknownMembers(_ value: String) throws {
    let data = #"{"x":\#(value),"actor":"a","id":\#(value),"target":"b","user":\#(value)}"#
    let text = structured(["x": value, "subject": value, "actor": value, "data": data])
    #expect(try decode(text) == expected)
  }

  @Test("of two members with the same name the first one counts")
  func duplicates() throws {
    let data = #"{"actor":"a","actor":7,"target":"b","\u0061ctor":"c"}"#
    let text = structured(["data": data]).dropLast() + #","data":null,"id":"second","type":"?","time":0}"#
    #expect(try decode(String(text)) == expected)
    let nullFirst = #"{"actor":"a","target":"b","silent":null,"silent":true}"#
    #expect(try decode(structured(["data": nullFirst])) == expected)
  }

  @Test("null says that an optional member is not there")
  func nulls() throws {
    let data = #"{"actor":"a","target":"b","silent":null,"extra":null}"#
    #expect(try decode(structured(["data": data])) == expected)
    let published = try Record.binary(type: "post-published", #"{"author":"b","post":"p","publishedAt":null}"#)
      .decoded()
    #expect(published.assertion == .published(Post(author: try UserID("b"), id: try PostID("p")), publishedAt: nil))
  }

  @Test("names and values may be escaped, members may come in any order, white space may be anywhere")
  func spelling() throws {
    let text = """
      \u{FEFF} \t{ "d\\u0061ta" :\r\n {"target":"\\u0062" , "\\u0061\\u0063tor": "a"}, "time":"2012-07-04T00:00:00\\u005A",
      "type":"f\\u006Fllow","source":"\\/test","\\u0069d":"e\\u0031","specversion":"1\\u002e0" }\n
      """
    #expect(try decode(text) == expected)
  }

  @Test("an escape stands for its scalar, in every plane")
  func escapes() throws {
    for value in stride(from: UInt32(0xA0), through: 0x10FFFF, by: 0x2F) {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let escaped = String(scalar).utf16.map { unit in
        "\\u" + String(repeating: "0", count: 4 - String(unit, radix: 16).count) + String(unit, radix: 16)
      }
      let event = try decode(structured(["id": "\"x\(escaped.joined())\""]))
      if !event.id.string.utf8.elementsEqual("x\(scalar)".utf8) {
        Issue.record("U+\(String(value, radix: 16)) is wrong")
      }
    }
  }

  @Test("silent and extra belong to present edges only")
  func strayOptions() throws {
    for (type, data) in [
      ("unfollow", #"{"actor":"a","target":"b","silent":7,"extra":7}"#),
      ("unlike", #"{"actor":"a","author":"b","post":"p","silent":7,"extra":7}"#),
      ("post-deleted", #"{"author":"b","post":"p","silent":7,"extra":7,"publishedAt":7}"#),
      ("post-published", #"{"author":"b","post":"p","silent":7,"extra":7}"#),
      ("feedback-seen", #"{"user":"u","upTo":"2012-07-04T00:00:00Z","silent":7,"extra":7}"#),
    ] {
      #expect(try Record.binary(type: type, data).decoded().type.rawValue == type)
    }
  }

  @Test("extra keeps its bytes, and the data range is exact")
  func exactBytes() throws {
    let extra = "{ \"b\" : [1.0,\n\t1e2],\"a\":\"\\u00e9é\\/\" , \"a\":{ } }"
    let data = "{\"actor\":\"a\",\"target\":\"b\",\"silent\":true,\"extra\" :\n \(extra) }"
    let bytes = Array(structured(["data": data + " "]).utf8)
    let (event, range) = try EventDecoder.decodeStructured(bytes.span)
    guard case .present(_, silent: true, extra: let kept?) = event.assertion else {
      Issue.record("not a silent edge with extra")
      return
    }
    #expect(kept.utf8.elementsEqual(extra.utf8))
    #expect(bytes[range].elementsEqual(data.utf8))
  }

  @Test("nesting may be 512 deep, as in Foundation, and the deepest text exhausts nothing")
  func nesting() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    _ = try decode(structured(["x": nested(511)]))
    #expect(reason { () throws(InvalidEvent) in try decode(structured(["x": nested(512)])) } == .notJSON)
    let mixed = String(repeating: "{\"a\":[", count: 255) + String(repeating: "]}", count: 255)
    _ = try decode(structured(["x": mixed]))
    #expect(reason { () throws(InvalidEvent) in try decode(structured(["x": "[[\(mixed)]]"])) } == .notJSON)
    let crossed = mixed.replacing("]}", with: "}]", maxReplacements: 1)
    #expect(reason { () throws(InvalidEvent) in try decode(structured(["x": crossed])) } == .notJSON)
    #expect(reason { () throws(InvalidEvent) in try decode(String(repeating: "{\"a\":", count: 13_000)) } == .notJSON)
  }
}
