import Foundation
import SocialEvents
import Testing

struct EncoderTests {
  private let encoder = EventEncoder()

  @Test("what is written reads back the same, in both modes", arguments: [1, 2, 3] as [UInt64])
  func roundTrip(seed: UInt64) throws {
    var events = RandomEvents(seed: seed)
    var decoder = EventDecoder()
    for number in 0..<700 {
      let event = try events.event()
      var line: [UInt8] = []
      try encoder.appendStructured(event, to: &line)
      let (read, range) = try EventDecoder.decodeStructured(line.span)
      #expect(read == event, "event \(number) of seed \(seed), structured")
      #expect(!line.contains(0x0A))
      var data: [UInt8] = []
      try encoder.appendData(of: event, to: &data)
      #expect(line[range].elementsEqual(data))
      let record = Record(headers: encoder.headers(of: event).map { ($0.name, Array($0.value.utf8)) }, value: data)
      #expect(try record.decoded(by: &decoder) == event, "event \(number) of seed \(seed), binary")
      #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(line)) }
    }
  }

  @Test("the bytes of an event of each kind")
  func bytes() throws {
    let (a, b) = (try UserID("a"), try UserID("b\"/"))
    let post = Post(author: b, id: try PostID("p"))
    let time = Timestamp(microseconds: 1_341_360_000_000_001)
    for (assertion, expected) in [
      (
        Assertion.present(try .follow(actor: a, target: b), silent: true, extra: "{\"k\": 1}"),
        #"{"actor":"a","target":"b\"/","silent":true,"extra":{"k": 1}}"#
      ),
      (.present(.like(actor: a, post: post), silent: false, extra: nil), #"{"actor":"a","author":"b\"/","post":"p"}"#),
      (.absent(.favorite(actor: a, post: post)), #"{"actor":"a","author":"b\"/","post":"p"}"#),
      (.published(post, publishedAt: nil), #"{"author":"b\"/","post":"p"}"#),
      (
        .published(post, publishedAt: time),
        #"{"author":"b\"/","post":"p","publishedAt":"2012-07-04T00:00:00.000001Z"}"#
      ),
      (.deleted(post), #"{"author":"b\"/","post":"p"}"#),
      (.seen(a, upTo: time), #"{"user":"a","upTo":"2012-07-04T00:00:00.000001Z"}"#),
    ] {
      var data = Array("before".utf8)
      try encoder.appendData(of: event(assertion), to: &data)
      #expect(String(decoding: data, as: UTF8.self) == "before" + expected)
    }
    var line: [UInt8] = []
    try encoder.appendStructured(
      event(.seen(a, upTo: time), traceparent: "00-1"), to: &line)
    #expect(
      String(decoding: line, as: UTF8.self)
        == #"{"specversion":"1.0","id":"e","source":"/s","type":"feedback-seen","time":"2012-07-04T00:00:00.000000Z","#
        + #""traceparent":"00-1","data":{"user":"a","upTo":"2012-07-04T00:00:00.000001Z"}}"#)
  }

  private func event(
    _ assertion: Assertion, source: String = "/s", time: Int64 = 1_341_360_000_000_000, traceparent: String? = nil
  ) throws -> Event {
    Event(
      id: try EventID("e"), source: source, time: Timestamp(microseconds: time), assertion: assertion,
      traceparent: traceparent)
  }

  @Test("line breaks inside extra are kept in binary mode and become spaces in a line")
  func lineBreaks() throws {
    let follow = try Edge.follow(actor: UserID("a"), target: UserID("b"))
    let event = try event(.present(follow, silent: false, extra: "{\r\n\t\"k\":\n\"\\n\"}"))
    var data: [UInt8] = []
    try encoder.appendData(of: event, to: &data)
    #expect(try Record.binary(String(decoding: data, as: UTF8.self)).decoded().assertion == event.assertion)
    var line: [UInt8] = []
    try encoder.appendStructured(event, to: &line)
    guard case .present(_, _, let extra) = try decode(line).assertion else { return }
    #expect(extra == "{  \t\"k\": \"\\n\"}")
  }

  @Test("an event that can't be read back is refused, and nothing is appended")
  func refusals() throws {
    let follow = try Edge.follow(actor: UserID("a"), target: UserID("b"))
    let deep = String(repeating: "{\"a\":", count: 511) + "0" + String(repeating: "}", count: 511)
    func extra(_ text: String) -> Assertion { .present(follow, silent: false, extra: text) }
    let user = try UserID("a")
    let post = Post(author: user, id: try PostID("p"))
    for (event, reason) in [
      (try event(.absent(follow), source: ""), InvalidEvent.Reason.illTypedMember),
      (try event(.absent(follow), time: -1), .timeBefore1970),
      (try event(.absent(follow), time: .max), .illTypedMember),
      (try event(.seen(user, upTo: Timestamp(microseconds: -1))), .timeBefore1970),
      (try event(.published(post, publishedAt: Timestamp(microseconds: .max))), .illTypedMember),
      (try event(extra("")), .illTypedMember),
      (try event(extra("[]")), .illTypedMember),
      (try event(extra("{} ")), .illTypedMember),
      (try event(extra(" {}")), .illTypedMember),
      (try event(extra("{},\"silent\":true")), .illTypedMember),
      (try event(extra("{\"a\":1,}")), .illTypedMember),
      (try event(extra(deep)), .illTypedMember),
      (try event(extra("{\"k\":\"\(String(repeating: "x", count: 4089))\"}")), .extraTooLarge),
    ] {
      var bytes: [UInt8] = [1]
      let data = #expect(throws: InvalidEvent.self) { try encoder.appendData(of: event, to: &bytes) }
      #expect(data?.reason == reason)
      let line = #expect(throws: InvalidEvent.self) { try encoder.appendStructured(event, to: &bytes) }
      #expect(line?.reason == reason)
      #expect(bytes == [1])
    }
    let wide = try event(.absent(follow), source: String(repeating: "s", count: 65_536))
    var bytes: [UInt8] = [1]
    #expect(throws: InvalidEvent.self) { try encoder.appendStructured(wide, to: &bytes) }
    #expect(bytes == [1])
  }

  @Test("a trace context that would be ignored is not written")
  func badTraceparent() throws {
    let user = try UserID("a")
    for bad in ["", "0\n1", String(repeating: "0", count: 129)] {
      let event = try event(.seen(user, upTo: Timestamp(microseconds: 0)), traceparent: bad)
      #expect(!encoder.headers(of: event).contains { $0.name == "traceparent" })
      var line: [UInt8] = []
      try encoder.appendStructured(event, to: &line)
      #expect(!String(decoding: line, as: UTF8.self).contains("traceparent"))
    }
  }

  @Test("JSON strings are escaped as required and no further (SPEC 9)")
  func strings() throws {
    for (text, expected) in [
      ("", "\"\""), ("plain text/é😀", "\"plain text/é😀\""), ("\"\\", #""\"\\""#),
      ("\u{8}\t\n\u{C}\r\u{0}\u{1F}\u{1B}", #""\b\t\n\f\r\u0000\u001f\u001b""#),
      ("\u{7F}\u{2028}", "\"\u{7F}\u{2028}\""),
      ("12345678\"", #""12345678\"""#), ("1234567\"9", #""1234567\"9""#),
    ] {
      var bytes: [UInt8] = []
      appendJSONString(text, to: &bytes)
      #expect(bytes == Array(expected.utf8))
      #expect(try JSONDecoder().decode(String.self, from: Data(bytes)) == text)
    }
    for value in UInt32(0)...0x2FF {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let text = "some text before " + String(scalar) + "x"
      var bytes: [UInt8] = []
      appendJSONString(text, to: &bytes)
      #expect(try JSONDecoder().decode(String.self, from: Data(bytes)) == text)
    }
  }
}
