/// Makes a damaged text out of good ones. The same seed gives the same text.
struct Mutator {
  var generator: SeededGenerator

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  private static let tokens: [[UInt8]] = [
    "\"", "\\", "{", "}", "[", "]", ",", ":", "null", "true", "0", "-1.5e+3", "1e999", "1.", "\\u0000",
    "\\ud83d\\ude00",
    "\\ud800", "\\udc00", "\"\"", "{}", "[]", " ", "\n", "\t", "é", "\u{FEFF}", "\u{85}", "Z", "+01:00", ".123456789",
    "60",
    "\"data\":", "\"actor\":", "\"silent\":true", "\"extra\":{\"a\":1}", "\"type\":\"like\"", "\"id\":\"x\"", "1969",
    "9999",
    "\"post\":\"p\"", "\"author\":\"b\"",
  ].map { Array($0.utf8) }

  mutating func mutant(of texts: [[UInt8]], index: Int) -> [UInt8] {
    var text = texts[index]
    for _ in 0...Int.random(in: 0..<3, using: &generator) { mutate(&text, texts) }
    return text
  }

  private mutating func mutate(_ text: inout [UInt8], _ texts: [[UInt8]]) {
    let place = Int.random(in: 0...text.count, using: &generator)
    let range = range(in: text)
    switch Int.random(in: 0..<10, using: &generator) {
    case 0 where place < text.count: text[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
    case 1 where place < text.count: text[place] = UInt8.random(in: 0...255, using: &generator)
    case 2: text.removeLast(text.count - place)
    case 3: text.removeSubrange(range)
    case 4:
      // Splice a piece of another text in.
      let other = texts[Int.random(in: 0..<texts.count, using: &generator)]
      text.insert(contentsOf: other[self.range(in: other)], at: place)
    case 5: text.insert(contentsOf: text[range], at: place)
    case 6: swapNumber(&text)
    case 7: duplicateMember(&text)
    default:
      let token = Self.tokens[Int.random(in: 0..<Self.tokens.count, using: &generator)]
      text.insert(contentsOf: token, at: place)
    }
  }

  private mutating func range(in text: [UInt8]) -> Range<Int> {
    let start = Int.random(in: 0...text.count, using: &generator)
    return start..<min(text.count, start + Int.random(in: 0..<24, using: &generator))
  }

  /// Replaces some digits by others: times, escapes and numbers that are nearly right.
  private mutating func swapNumber(_ text: inout [UInt8]) {
    let digits = text.indices.filter { 0x30...0x39 ~= text[$0] }
    guard let place = digits.randomElement(using: &generator) else { return }
    text[place] = UInt8.random(in: 0x30...0x39, using: &generator)
  }

  /// Repeats what lies between two commas.
  private mutating func duplicateMember(_ text: inout [UInt8]) {
    let commas = text.indices.filter { text[$0] == UInt8(ascii: ",") }
    guard commas.count > 1 else { return }
    let first = Int.random(in: 0..<commas.count - 1, using: &generator)
    let place = commas[Int.random(in: 0..<commas.count, using: &generator)]
    text.insert(contentsOf: text[commas[first]..<commas[first + 1]], at: place)
  }
}
