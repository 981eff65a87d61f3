import FanoutWorker
import Foundation
import Testing

@Suite("Text that no terminal obeys")
struct SafeTextTests {
  @Test(
    "controls and what can't be seen are escaped",
    arguments: [
      ("plain", "plain"), ("", ""), ("ünï 漢字 🎉", "ünï 漢字 🎉"), ("a\u{1B}[31m", #"a\u{1B}[31m"#), ("\0", #"\u{0}"#),
      ("a\nb\rc\td", #"a\nb\rc\td"#), ("\u{7F}\u{9B}2J\u{85}", #"\u{7F}\u{9B}2J\u{85}"#),
      ("\u{202E}evil\u{2066}", #"\u{202E}evil\u{2066}"#), ("\u{2028}\u{2029}", #"\u{2028}\u{2029}"#),
      ("\u{FEFF}\u{200B}\u{AD}", #"\u{FEFF}\u{200B}\u{AD}"#), (#"\n"#, #"\\n"#), ("a\r\nb", #"a\r\nb"#),
      ("ann\u{1F}bob", #"ann\u{1F}bob"#), ("\u{E000}\u{FFFF}\u{E0041}", #"\u{E000}\u{FFFF}\u{E0041}"#),
    ])
  func line(text: String, expected: String) {
    #expect(SafeText.line(text) == expected)
  }

  @Test("as JSON it is the same text, and every scalar there is gets through one way or the other")
  func json() throws {
    var all = String.UnicodeScalarView()
    // All of the basic plane, and some beyond.
    for value in Array(0..<UInt32(0x10000)) + [0x1F389, 0xE0041, 0xF0000, 0x10FFFF] {
      if let scalar = Unicode.Scalar(value) { all.append(scalar) }
    }
    let text = String(all)
    for json in [SafeText.json(text), SafeText.json(document: "\"\(Self.withoutSpecial(text))\"")] {
      #expect(json.unicodeScalars.allSatisfy { !Self.isDangerous($0) })
      let parsed = try JSONSerialization.jsonObject(with: Data(json.utf8), options: .fragmentsAllowed) as? String
      let expected = json == SafeText.json(text) ? text : Self.withoutSpecial(text)
      #expect(parsed.map { Array($0.unicodeScalars) } == Array(expected.unicodeScalars))
    }
    #expect(SafeText.line(text).unicodeScalars.allSatisfy { !Self.isDangerous($0) })
  }

  @Test("a document keeps its structure")
  func document() throws {
    let json = SafeText.json(document: "{\t\"a\u{202E}\u{9B}\" :\n[1,\r2]}")
    #expect(json == #"{ "a\u202e\u009b" : [1, 2]}"#)
  }

  @Test("bytes that are no UTF-8 are no text, and their dump shows each of them")
  func dump() {
    #expect(SafeText.line(utf8: [0xC3, 0x28]) == nil)
    #expect(SafeText.line(utf8: Array("ü\u{9B}".utf8)) == #"ü\u{9B}"#)
    #expect(SafeText.hexDump([]) == [])
    #expect(
      SafeText.hexDump([0x1B, 0x5B, 0x41, 0xFF] + Array(repeating: 0x7E, count: 14)) == [
        "00000000  1b 5b 41 ff 7e 7e 7e 7e  7e 7e 7e 7e 7e 7e 7e 7e  |.[A.~~~~~~~~~~~~|",
        "00000010  7e 7e                                             |~~|",
      ])
    #expect(SafeText.hexDump(Array(repeating: 0, count: 70_000)).last?.hasPrefix("00011160  ") == true)
  }

  /// What a JSON string can't hold as it is.
  private static func withoutSpecial(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && $0 != "\"" && $0 != "\\" }))
  }

  private static func isDangerous(_ scalar: Unicode.Scalar) -> Bool {
    let bidi: Set<UInt32> = [
      0x61C, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069,
    ]
    return scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || bidi.contains(scalar.value)
      || [0x2028, 0x2029, 0xFEFF, 0x200B, 0xAD].contains(scalar.value)
  }
}
