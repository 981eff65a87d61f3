/// Appends `string` as a JSON string, quotes included, escaped as SPEC 9 has it: as JSON requires and no further.
package func appendJSONString(_ string: String, to bytes: inout [UInt8]) {
  bytes.append(UInt8(ascii: "\""))
  let text = string.utf8.span
  var at = 0
  while at < text.count {
    let end = text.endOfUnescapedText(from: at)
    bytes.append(contentsOf: text.extracting(at..<end))
    if end < text.count { appendEscape(of: text[end], to: &bytes) }
    at = end + 1
  }
  bytes.append(UInt8(ascii: "\""))
}

/// Appends JSON that is known to be valid, line breaks replaced by spaces, so that it fits into a line of NDJSON.
///
/// It means the same: a string holds no raw line break, so any that there is stands between tokens.
package func appendJSONOnOneLine(_ json: String, to bytes: inout [UInt8]) {
  let start = bytes.count
  bytes.append(contentsOf: json.utf8.span)
  for index in start..<bytes.count where bytes[index] == 0x0A || bytes[index] == 0x0D { bytes[index] = 0x20 }
}

private func appendEscape(of byte: UInt8, to bytes: inout [UInt8]) {
  bytes.append(UInt8(ascii: "\\"))
  switch byte {
  case 0x08: bytes.append(UInt8(ascii: "b"))
  case 0x09: bytes.append(UInt8(ascii: "t"))
  case 0x0A: bytes.append(UInt8(ascii: "n"))
  case 0x0C: bytes.append(UInt8(ascii: "f"))
  case 0x0D: bytes.append(UInt8(ascii: "r"))
  case 0..<0x20:
    bytes.append(literal: "u00")
    bytes.append(hexDigit(byte >> 4))
    bytes.append(hexDigit(byte & 0x0F))
  default: bytes.append(byte)
  }
}

/// - Parameter value: 0 to 15.
func hexDigit(_ value: UInt8) -> UInt8 {
  value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + (value & 0x0F) - 10
}

extension Span<UInt8> {
  /// The first byte from `start` on that a JSON string can't hold as it is.
  @inline(__always)
  fileprivate func endOfUnescapedText(from start: Int) -> Int {
    var at = start
    while at <= count - 8 {
      let special = word(at: at).bytesEscapedInStrings
      if special != 0 { return at + special.trailingZeroBitCount >> 3 }
      at += 8
    }
    while at < count {
      let byte = self[at]
      if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return at }
      at += 1
    }
    return at
  }
}

extension [UInt8] {
  @inline(__always)
  mutating func append(contentsOf span: Span<UInt8>) {
    unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }

  @inline(__always)
  mutating func append(literal: StaticString) {
    // Safe: a literal of more than one scalar is stored as UTF-8.
    unsafe append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
  }
}
