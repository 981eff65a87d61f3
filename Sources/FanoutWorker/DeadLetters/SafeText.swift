/// Writes bytes from the network so that no terminal obeys them: controls, among them ESC and the C1 set, marks that turn the
/// direction of text, and whatever else is invisible, become escapes.
package enum SafeText {
  /// For lines of text: `\n`, `\u{1B}`; a backslash is doubled, so that nothing else looks like an escape.
  package static func line(_ text: String) -> String {
    if isPlain(text) { return text }
    var safe = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": safe += #"\\"#
      case "\n": safe += #"\n"#
      case "\r": safe += #"\r"#
      case "\t": safe += #"\t"#
      case _ where isSafe(scalar): safe.unicodeScalars.append(scalar)
      default: safe += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      }
    }
    return safe
  }

  /// For JSON, quotes included: the escapes are JSON's, so that whoever parses it gets the text as it was.
  package static func json(_ text: String) -> String {
    var safe = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": safe += #"\""#
      case "\\": safe += #"\\"#
      case _ where isSafe(scalar): safe.unicodeScalars.append(scalar)
      default: safe += jsonEscape(scalar)
      }
    }
    return safe + "\""
  }

  /// A JSON document, which stays the same one: what must be escaped can only be in its strings, except white space.
  package static func json(document: String) -> String {
    var safe = ""
    for scalar in document.unicodeScalars {
      switch scalar {
      case "\t", "\n", "\r": safe += " "
      case _ where isSafe(scalar): safe.unicodeScalars.append(scalar)
      default: safe += jsonEscape(scalar)
      }
    }
    return safe
  }

  private static func jsonEscape(_ scalar: Unicode.Scalar) -> String {
    (UTF16.encode(scalar) ?? .init()).map { "\\u" + hex(UInt64($0), 4) }.joined()
  }

  /// Bytes that are UTF-8 as a line of text, nil for others.
  package static func line(utf8 bytes: [UInt8]) -> String? { string(bytes).map(line) }

  /// Bytes that are UTF-8 as a string, nil for others.
  package static func string(_ bytes: [UInt8]) -> String? { String(validating: bytes, as: UTF8.self) }

  /// Sixteen bytes a line: their place, their digits, and those of them that are visible ASCII.
  package static func hexDump(_ bytes: [UInt8]) -> [String] {
    stride(from: 0, to: bytes.count, by: 16).map { start in
      let row = bytes[start..<min(start + 16, bytes.count)]
      let digits = (0..<16).map { start + $0 < row.endIndex ? hex(UInt64(bytes[start + $0]), 2) : "  " }
      let left = digits[..<8].joined(separator: " ")
      let right = digits[8...].joined(separator: " ")
      let ascii = row.map { 0x20...0x7E ~= $0 ? Character(Unicode.Scalar($0)) : "." }
      return "\(hex(UInt64(start), 8))  \(left)  \(right)  |\(String(ascii))|"
    }
  }

  private static func hex(_ value: UInt64, _ width: Int) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  private static func isPlain(_ text: String) -> Bool {
    text.utf8.allSatisfy { 0x20...0x7E ~= $0 && $0 != UInt8(ascii: "\\") }
  }

  private static func isSafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
    default: true
    }
  }
}
