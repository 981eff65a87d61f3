import SocialEvents
import Testing

/// Every reason of SPEC 2, "Invalid".
struct DecoderReasonTests {
  @Test(
    "a structured event with one fault gets that fault's reason",
    arguments: [
      ("", .notJSON),
      (" \n", .notJSON),
      ("null", .notJSON),
      ("[]", .notJSON),
      ("\"follow\"", .notJSON),
      ("{", .notJSON),
      (structured() + "x", .notJSON),
      (structured() + structured(), .notJSON),
      (structured(["n": "01"]), .notJSON),
      (structured(["n": "[1,]"]), .notJSON),
      (structured(["n": #""\ud800""#]), .notJSON),
      (structured(["n": "\"a\tb\""]), .notJSON),

      (structured(["specversion": nil]), .missingMember),
      (structured(["specversion": "\"0.3\""]), .illTypedMember),
      (structured(["specversion": "1.0"]), .illTypedMember),
      (structured(["specversion": "null"]), .illTypedMember),
      (structured(["id": nil]), .missingMember),
      (structured(["id": "null"]), .illTypedMember),
      (structured(["id": "7"]), .illTypedMember),
      (structured(["id": "\"\""]), .invalidIdentifier),
      (structured(["id": #""a\u0000""#]), .invalidIdentifier),
      (structured(["id": #""a\u009f""#]), .invalidIdentifier),
      (structured(["id": "\"\(String(repeating: "x", count: 129))\""]), .invalidIdentifier),
      (structured(["source": nil]), .missingMember),
      (structured(["source": "\"\""]), .illTypedMember),
      (structured(["source": "{}"]), .illTypedMember),
      (structured(["type": nil]), .missingMember),
      (structured(["type": "true"]), .illTypedMember),
      (structured(["type": "\"\""]), .unknownType),
      (structured(["type": "\"Follow\""]), .unknownType),
      (structured(["type": "\"followed\""]), .unknownType),
      (structured(["time": nil]), .missingMember),
      (structured(["time": "null"]), .illTypedMember),
      (structured(["time": "1341360000"]), .illTypedMember),
      (structured(["time": "\"yesterday\""]), .illTypedMember),
      (structured(["time": "\"1969-12-31T23:59:59Z\""]), .timeBefore1970),
      (structured(["data": nil]), .missingMember),
      (structured(["data": nil, "data_base64": "\"e30=\""]), .missingMember),
      (structured(["data": "null"]), .illTypedMember),
      (structured(["data": "[]"]), .illTypedMember),
      (structured(["data": #""{\"actor\":\"a\",\"target\":\"b\"}""#]), .illTypedMember),
    ] as [(String, InvalidEvent.Reason)])
  func envelope(_ text: String, _ expected: InvalidEvent.Reason) {
    #expect(reason { () throws(InvalidEvent) in try decode(text) } == expected)
  }

  @Test(
    "data with one fault gets that fault's reason, in both modes",
    arguments: [
      ("follow", "{}", .missingMember),
      ("follow", #"{"actor":"a"}"#, .missingMember),
      ("follow", #"{"target":"a"}"#, .missingMember),
      ("follow", #"{"actor":"a","target":null}"#, .illTypedMember),
      ("follow", #"{"actor":1,"target":"b"}"#, .illTypedMember),
      ("follow", #"{"actor":"a","target":"a"}"#, .selfFollow),
      ("unfollow", #"{"actor":"a","target":"\u0061"}"#, .selfFollow),
      ("follow", #"{"actor":"","target":"b"}"#, .invalidIdentifier),
      ("follow", #"{"actor":" ","target":"b"}"#, .invalidIdentifier),
      ("follow", #"{"actor":"a\n","target":"b"}"#, .invalidIdentifier),
      ("follow", #"{"actor":"a","target":"b","silent":1}"#, .illTypedMember),
      ("follow", #"{"actor":"a","target":"b","silent":"true"}"#, .illTypedMember),
      ("follow", #"{"actor":"a","target":"b","extra":[]}"#, .illTypedMember),
      ("follow", #"{"actor":"a","target":"b","extra":"{}"}"#, .illTypedMember),
      ("like", #"{"actor":"a","target":"b"}"#, .missingMember),
      ("like", #"{"actor":"a","author":"b"}"#, .missingMember),
      ("unlike", #"{"actor":"a","post":"p"}"#, .missingMember),
      ("favorite", #"{"author":"b","post":"p"}"#, .missingMember),
      ("favorite", #"{"actor":"a","author":"b","post":7}"#, .illTypedMember),
      ("unfavorite", #"{"actor":"a","author":"b","post":"\u3000"}"#, .invalidIdentifier),
      ("post-published", #"{"author":"b"}"#, .missingMember),
      ("post-published", #"{"author":"b","post":"p","publishedAt":0}"#, .illTypedMember),
      ("post-published", #"{"author":"b","post":"p","publishedAt":"2012-02-30T00:00:00Z"}"#, .illTypedMember),
      ("post-published", #"{"author":"b","post":"p","publishedAt":"1960-01-01T00:00:00Z"}"#, .timeBefore1970),
      ("post-deleted", #"{"post":"p"}"#, .missingMember),
      ("feedback-seen", #"{"user":"u"}"#, .missingMember),
      ("feedback-seen", #"{"user":"u","upTo":null}"#, .illTypedMember),
      ("feedback-seen", #"{"user":"u","upTo":"1969-01-01T00:00:00Z"}"#, .timeBefore1970),
    ] as [(String, String, InvalidEvent.Reason)])
  func data(_ type: String, _ data: String, _ expected: InvalidEvent.Reason) {
    #expect(reason { () throws(InvalidEvent) in try Record.binary(type: type, data).decoded() } == expected)
    let text = structured(["type": "\"\(type)\"", "data": data])
    #expect(reason { () throws(InvalidEvent) in try decode(text) } == expected)
  }

  @Test(
    "faulty headers of binary mode",
    arguments: [
      (["ce_specversion": nil], .missingMember, "specversion is missing"),
      (["ce_specversion": "1"], .illTypedMember, "specversion is not 1.0"),
      (["ce_id": nil], .missingMember, "id is missing"),
      (["ce_id": ""], .invalidIdentifier, "id is empty"),
      (["ce_source": nil], .missingMember, "source is missing"),
      (["ce_source": ""], .illTypedMember, "source is empty"),
      (["ce_type": nil], .missingMember, "type is missing"),
      (["ce_type": "poke"], .unknownType, "type is none that is known here"),
      (["ce_time": nil], .missingMember, "time is missing"),
      (["ce_time": "now"], .illTypedMember, "time is not an RFC 3339 time"),
      (["ce_time": "1965-01-01T00:00:00Z"], .timeBefore1970, "time lies before 1970"),
      (["content-type": "text/plain"], .illTypedMember, "content-type is not a JSON one"),
      (["content-type": ""], .illTypedMember, "content-type is not a JSON one"),
      (
        ["content-type": "application/cloudevents-batch+json"], .illTypedMember,
        "content-type is a batch of events, a record holds one"
      ),
    ] as [([String: String?], InvalidEvent.Reason, String)])
  func headers(_ changes: [String: String?], _ expected: InvalidEvent.Reason, _ detail: String) {
    var record = Record.binary(#"{"actor":"a","target":"b"}"#)
    for (name, value) in changes {
      record.headers.removeAll { $0.name == name }
      if let value { record.headers.append((name, Array(value.utf8))) }
    }
    let error = #expect(throws: InvalidEvent.self) { try record.decoded() }
    #expect(error == InvalidEvent(expected, detail))
  }

  @Test("an attribute that is not UTF-8 is named", arguments: ["specversion", "id", "source", "type", "time"])
  func headerNotUTF8(_ name: String) {
    var record = Record.binary(#"{"actor":"a","target":"b"}"#, changes: ["ce_\(name)": nil])
    record.headers.append(("ce_\(name)", [0x61, 0xFF]))
    let error = #expect(throws: InvalidEvent.self) { try record.decoded() }
    #expect(error == InvalidEvent(.illTypedMember, "\(name) is not UTF-8"))
  }

  @Test("a byte that can't stand alone in UTF-8 is found wherever it stands, and beside others", arguments: 0x80...0xFF)
  func oddByte(_ byte: UInt8) {
    for length in 1...3 {
      for place in 0...17 - length {
        var value = Array("/a-source-of-ours".utf8)
        // Continuations of nothing, or beginnings without an end.
        for offset in 0..<length { value[place + offset] = byte }
        var record = Record.binary(#"{"actor":"a","target":"b"}"#, changes: ["ce_source": nil])
        record.headers.append(("ce_source", value))
        let error = #expect(throws: InvalidEvent.self) { try record.decoded() }
        #expect(error == InvalidEvent(.illTypedMember, "source is not UTF-8"))
      }
    }
  }

  @Test("extra may have 4096 bytes and no more")
  func extraLimit() throws {
    for (length, expected) in [(4096, nil), (4097, InvalidEvent.Reason.extraTooLarge)] {
      let extra = "{\"k\":\"\(String(repeating: "x", count: length - 8))\"}"
      #expect(extra.utf8.count == length)
      let record = Record.binary(#"{"actor":"a","target":"b","extra": \#(extra) }"#)
      #expect(reason { () throws(InvalidEvent) in try record.decoded() } == expected)
    }
  }

  @Test("a value may have 65536 bytes and no more, whatever is in it")
  func valueLimit() throws {
    let text = structured()
    let padding = String(repeating: " ", count: 65_536 - text.utf8.count)
    _ = try decode(text + padding)
    #expect(reason { () throws(InvalidEvent) in try decode(text + padding + " ") } == .tooLarge)
    let garbage = [UInt8](repeating: 0xFF, count: 65_537)
    #expect(reason { () throws(InvalidEvent) in try decode(garbage) } == .tooLarge)
    let record = Record(headers: Record.binary("").headers, value: garbage)
    #expect(reason { () throws(InvalidEvent) in try record.decoded() } == .tooLarge)
  }

  @Test("not being JSON comes first, and other faults come in a fixed order")
  func precedence() throws {
    let faults = [
      #""data":{"actor":7,"target":8}"#, #""time":"?""#, #""type":"?""#, #""source":"""#, #""id":"""#,
      #""specversion":"2.0""#,
    ]
    var text = "{" + faults.joined(separator: ",")
    #expect(reason { () throws(InvalidEvent) in try decode(text + ",") } == .notJSON)
    var details: [String] = []
    // Mend the reported member, again and again.
    for good in [#""1.0""#, #""e1""#, #""/test""#, #""follow""#, #""2012-07-04T00:00:00Z""#] {
      let error = #expect(throws: InvalidEvent.self) { try decode(text + "}") }
      let member = String(error?.detail.prefix { $0 != " " } ?? "")
      details.append(member)
      text = "{\"\(member)\":\(good)," + text.dropFirst()
    }
    #expect(details == ["specversion", "id", "source", "type", "time"])
    let error = #expect(throws: InvalidEvent.self) { try decode(text + "}") }
    #expect(error?.detail == "actor is not a string")
  }

  @Test("no detail echoes a value or grows with it")
  func details() {
    let secret = String(repeating: "secret", count: 50)
    for text in [
      structured(["id": "\"\(secret)\""]), structured(["type": "\"\(secret)\""]), structured(["time": "\"\(secret)\""]),
      structured(["source": "[\"\(secret)\"]"]), structured(["data": "{\"actor\":\"\(secret)\"}"]),
      structured(["\(secret)": "x"]), secret,
    ] {
      let error = #expect(throws: InvalidEvent.self) { try decode(text) }
      #expect(error?.detail.contains("secret") == false)
      #expect(error.map { 1...200 ~= $0.detail.utf8.count } == true)
    }
  }
}
