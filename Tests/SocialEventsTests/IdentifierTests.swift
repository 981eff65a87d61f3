import SocialEvents
import Testing

struct IdentifierTests {
  @Test(
    "the byte rules of SPEC 1 accept",
    arguments: [
      "a", "u213163", String(repeating: "x", count: 128), String(repeating: "é", count: 64), "a b", " a", "\u{A0}a",
      "é", "e\u{301}", "😀", "\u{FEFF}", "\u{200B}", "\u{AD}", "\u{2028}x", "\"\\/", "~", "01234567", "012345678",
    ])
  func accepts(_ text: String) throws {
    #expect(try UserID(text).string.utf8.elementsEqual(text.utf8))
    #expect(try PostID(text).string.utf8.elementsEqual(text.utf8))
    #expect(try EventID(text).string.utf8.elementsEqual(text.utf8))
  }

  @Test(
    "the byte rules of SPEC 1 refuse",
    arguments: [
      "", String(repeating: "x", count: 129), String(repeating: "é", count: 64) + "x", "a\u{0}", "\u{1F}", "a\nb",
      "\u{7F}", "abcdefg\u{7F}", "a\u{80}", "\u{85}", "a\u{9F}",
    ])
  func refuses(_ text: String) {
    #expect(reason { () throws(InvalidEvent) in try UserID(text) } == .invalidIdentifier)
    #expect(reason { () throws(InvalidEvent) in try PostID(text) } == .invalidIdentifier)
    #expect(reason { () throws(InvalidEvent) in try EventID(text) } == .invalidIdentifier)
  }

  @Test(
    "users and posts are not only white space, event ids may be",
    arguments: [" ", "        ", "  \u{A0}", "\u{3000}", "\u{2028}"])
  func blank(_ text: String) throws {
    #expect(reason { () throws(InvalidEvent) in try UserID(text) } == .invalidIdentifier)
    #expect(reason { () throws(InvalidEvent) in try PostID(text) } == .invalidIdentifier)
    _ = try EventID(text)
  }

  @Test("the two spellings of é are two users, in every respect")
  func bytesDecide() throws {
    let composed = try UserID("é")
    let decomposed = try UserID("e\u{301}")
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
    #expect(decomposed < composed)
    #expect(!(composed < decomposed))
    _ = try Edge.follow(actor: composed, target: decomposed)
  }

  @Test("equality, order and hash are those of the bytes")
  func matchesBytes() throws {
    var events = RandomEvents(seed: 1)
    var texts = ["é", "e\u{301}", "e", "\u{1D160}", "\u{E000}", "\u{FFFF}", "z", "12345678", "123456789"]
    for _ in 0..<60 { texts.append(events.text()) }
    for a in texts {
      for b in texts {
        let (left, right) = (try UserID(a), try UserID(b))
        #expect((left == right) == (Array(a.utf8) == Array(b.utf8)))
        #expect((left < right) == a.utf8.lexicographicallyPrecedes(b.utf8))
        if left == right { #expect(left.hashValue == right.hashValue) }
      }
    }
  }

  @Test("a fault names the rule and not the value")
  func detail() throws {
    let error = #expect(throws: InvalidEvent.self) { try UserID("secret\u{0}") }
    #expect(error?.detail == "user holds a control character")
    let long = #expect(throws: InvalidEvent.self) { try PostID(String(repeating: "s", count: 200)) }
    #expect(long?.detail == "post is 200 bytes long, 128 are allowed")
  }

  @Test("UUIDv7 ids carry their time and sort by it (SPEC 2)")
  func version7() throws {
    var generator = SeededGenerator(seed: 7)
    let id = EventID.version7(milliseconds: 0x0138_3FD8_D7E0, using: &generator)
    #expect(id.string.hasPrefix("01383fd8-d7e0-7"))
    #expect(id.string.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil)
    _ = try EventID(id.string)
    let later = EventID.version7(milliseconds: 0x0138_3FD8_D7E1, using: &generator)
    #expect(id < later)
    let extreme = EventID.version7(milliseconds: .max, using: &generator)
    #expect(extreme.string.hasPrefix("ffffffff-ffff-7"))
    var ids: Set<EventID> = []
    for _ in 0..<1000 { ids.insert(EventID.version7(milliseconds: 1, using: &generator)) }
    #expect(ids.count == 1000)
  }
}
