import Foundation

/// Where `JSONSerialization` of Swift 6.3 on Linux is not RFC 8259, found by trying, and mended before it sees the text:
///
/// 1. It accepts a comma before the end of an array or object.
/// 2. It accepts UTF-16 and UTF-32, which RFC 8259 rules out between systems. Such text holds NUL bytes; JSON in UTF-8 holds none.
/// 3. It refuses numbers beyond the range of `Double`, such as 1e999, which are JSON.
enum FoundationDeviations {
  /// A text that Foundation accepts exactly if `bytes` are RFC 8259 JSON in UTF-8; nil if they can't be.
  static func mended(_ bytes: [UInt8]) -> Data? {
    if bytes.contains(0) { return nil }
    var mended: [UInt8] = []
    var index = 0
    var lastToken: UInt8 = 0
    while index < bytes.count {
      let byte = bytes[index]
      switch byte {
      case UInt8(ascii: "\""):
        let end = endOfString(bytes, index)
        mended += bytes[index..<end]
        index = end
        lastToken = byte
        continue
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        let end = bytes[index...].firstIndex { !"+-.0123456789Ee".utf8.contains($0) } ?? bytes.count
        let number = String(decoding: bytes[index..<end], as: UTF8.self)
        let isNumber = number.range(
          of: #"\A-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\z"#, options: .regularExpression)
        mended += isNumber != nil ? [UInt8(ascii: "0")] : bytes[index..<end]
        index = end
        lastToken = byte
        continue
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        if lastToken == UInt8(ascii: ",") { return nil }
        lastToken = byte
      case 0x20, 0x09, 0x0A, 0x0D: break
      default: lastToken = byte
      }
      mended.append(byte)
      index += 1
    }
    return Data(mended)
  }

  static func endOfString(_ bytes: [UInt8], _ start: Int) -> Int {
    var index = start + 1
    while index < bytes.count && bytes[index] != UInt8(ascii: "\"") {
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    return min(index + 1, bytes.count)
  }
}

/// Where the values of an object's members are in a text that is known to be JSON. Foundation doesn't tell.
struct RawMembers {
  private var ranges: [String: Range<Int>] = [:]

  init(_ bytes: [UInt8]) {
    var depth = 0
    var name: String?
    var start = 0
    var end = 0
    var lastString: Range<Int>?
    var index = 0
    while index < bytes.count {
      let byte = bytes[index]
      let isString = byte == UInt8(ascii: "\"")
      let next = isString ? FoundationDeviations.endOfString(bytes, index) : index + 1
      if isString { lastString = index..<next }
      if byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") { depth -= 1 }
      if (depth == 1 && byte == UInt8(ascii: ",")) || depth == 0, let found = name {
        if ranges[found] == nil { ranges[found] = start..<end }
        name = nil
      }
      if depth == 1 && byte == UInt8(ascii: ":"), name == nil, let lastString {
        name = try? JSONDecoder().decode(String.self, from: Data(bytes[lastString]))
        start = -1
      } else if ![0x20, 0x09, 0x0A, 0x0D].contains(byte) {
        if start == -1 { start = index }
        end = next
      }
      if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") { depth += 1 }
      index = next
    }
  }

  subscript(name: String) -> Range<Int>? { ranges[name] }
}
