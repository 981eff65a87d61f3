extension JSONScanner {
  /// Consumes the string whose opening quote is at `position`, and checks its UTF-8 and its escapes.
  @inline(never)
  mutating func string(_ bytes: Span<UInt8>) throws(JSONFault) -> JSONToken {
    var token = JSONToken(kind: .string)
    let start = position + 1
    var at = start
    while true {
      at = Self.endOfPlainText(bytes, from: at)
      guard at < bytes.count else { throw JSONFault("a string is not closed", at: at) }
      let byte = bytes[at]
      if byte == UInt8(ascii: "\"") { break }
      if byte == UInt8(ascii: "\\") {
        token.isEscaped = true
        at = try Self.endOfEscape(bytes, from: at)
      } else if byte < 0x20 {
        throw JSONFault("a control character in a string is not escaped", at: at)
      } else {
        at = try Self.endOfScalar(bytes, from: at)
      }
    }
    token.start = Int32(truncatingIfNeeded: start)
    token.end = Int32(truncatingIfNeeded: at)
    position = at + 1
    return token
  }

  /// The first byte from `start` on that is a quote, a backslash, a control character or not ASCII.
  @inline(__always)
  private static func endOfPlainText(_ bytes: Span<UInt8>, from start: Int) -> Int {
    var at = start
    while at <= bytes.count - 8 {
      let special = bytes.word(at: at).bytesSpecialInStrings
      if special != 0 { return at + special.trailingZeroBitCount >> 3 }
      at += 8
    }
    while at < bytes.count {
      let byte = bytes[at]
      if byte < 0x20 || byte >= 0x80 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return at }
      at += 1
    }
    return at
  }

  /// Checks the escape at `start` and returns where it ends; a surrogate pair counts as one.
  private static func endOfEscape(_ bytes: Span<UInt8>, from start: Int) throws(JSONFault) -> Int {
    guard start + 1 < bytes.count else { throw JSONFault("a string is not closed", at: start) }
    switch bytes[start + 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return start + 2
    case UInt8(ascii: "u"):
      guard let unit = bytes.codeUnit(at: start + 2) else {
        throw JSONFault("an escape in a string is malformed", at: start)
      }
      if unit & 0xF800 != 0xD800 { return start + 6 }
      guard unit < 0xDC00, start + 7 < bytes.count, bytes[start + 6] == UInt8(ascii: "\\"),
        bytes[start + 7] == UInt8(ascii: "u"), let low = bytes.codeUnit(at: start + 8), low & 0xFC00 == 0xDC00
      else { throw JSONFault("an escaped surrogate in a string has no partner", at: start) }
      return start + 12
    default:
      throw JSONFault("an escape in a string is malformed", at: start)
    }
  }

  /// Checks the UTF-8 of the non-ASCII scalar at `start` (the table of Unicode 3.9) and returns where it ends.
  private static func endOfScalar(_ bytes: Span<UInt8>, from start: Int) throws(JSONFault) -> Int {
    let lead = bytes[start]
    let length: Int
    var second: ClosedRange<UInt8> = 0x80...0xBF
    switch lead {
    case 0xC2...0xDF: length = 2
    case 0xE0: (length, second) = (3, 0xA0...0xBF)
    case 0xED: (length, second) = (3, 0x80...0x9F)
    case 0xE1...0xEF: length = 3
    case 0xF0: (length, second) = (4, 0x90...0xBF)
    case 0xF1...0xF3: length = 4
    case 0xF4: (length, second) = (4, 0x80...0x8F)
    default: throw JSONFault("a string is not UTF-8", at: start)
    }
    guard start + length <= bytes.count, second.contains(bytes[start + 1]) else {
      throw JSONFault("a string is not UTF-8", at: start)
    }
    var at = start + 2
    while at < start + length {
      if bytes[at] & 0xC0 != 0x80 { throw JSONFault("a string is not UTF-8", at: start) }
      at += 1
    }
    return at
  }
}

extension Span<UInt8> {
  /// The eight bytes from `index` on, the first one lowest.
  @inline(__always)
  func word(at index: Int) -> UInt64 {
    // Safe: the load checks its bounds, and every bit pattern is a UInt64.
    UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
  }

  /// The UTF-16 code unit that the four hexadecimal digits from `index` on spell.
  func codeUnit(at index: Int) -> UInt16? {
    guard index + 4 <= count else { return nil }
    var unit: UInt16 = 0
    for offset in 0..<4 {
      let byte = self[index + offset]
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      default: return nil
      }
      unit = unit << 4 | UInt16(digit)
    }
    return unit
  }

  /// Appends the text of a scanned string, its escapes replaced by what they stand for.
  func appendUnescaped(_ range: Range<Int>, to text: inout [UInt8]) {
    var at = range.lowerBound
    while at < range.upperBound {
      let byte = self[at]
      guard byte == UInt8(ascii: "\\"), at + 1 < range.upperBound else {
        text.append(byte)
        at += 1
        continue
      }
      let escape = self[at + 1]
      at += 2
      switch escape {
      case UInt8(ascii: "b"): text.append(0x08)
      case UInt8(ascii: "f"): text.append(0x0C)
      case UInt8(ascii: "n"): text.append(0x0A)
      case UInt8(ascii: "r"): text.append(0x0D)
      case UInt8(ascii: "t"): text.append(0x09)
      case UInt8(ascii: "u"):
        var value = UInt32(codeUnit(at: at) ?? 0xFFFD)
        at += 4
        if value & 0xFC00 == 0xD800, let low = codeUnit(at: at + 2) {
          value = 0x10000 + (value & 0x3FF) << 10 + UInt32(low & 0x3FF)
          at += 6
        }
        text.append(contentsOf: String(Unicode.Scalar(value) ?? "\u{FFFD}").utf8)
      default: text.append(escape)
      }
    }
  }
}

extension UInt64 {
  /// `byte` in all eight places.
  @inline(__always)
  init(repeating byte: UInt8) { self = 0x0101_0101_0101_0101 &* UInt64(byte) }

  /// The top bit of each byte that is less than `limit` (at most 0x80). Above the lowest such byte, others may be marked too.
  @inline(__always)
  func bytes(lessThan limit: UInt8) -> UInt64 {
    (self &- UInt64(repeating: limit)) & ~self & UInt64(repeating: 0x80)
  }

  /// The top bit of each byte that a JSON string can't hold as it is. The lowest one is exact.
  @inline(__always)
  var bytesEscapedInStrings: UInt64 {
    bytes(lessThan: 0x20) | (self ^ UInt64(repeating: UInt8(ascii: "\""))).bytes(lessThan: 1)
      | (self ^ UInt64(repeating: UInt8(ascii: "\\"))).bytes(lessThan: 1)
  }

  /// The same, and the top bit of each byte that is not ASCII.
  @inline(__always)
  var bytesSpecialInStrings: UInt64 { bytesEscapedInStrings | self & UInt64(repeating: 0x80) }
}
