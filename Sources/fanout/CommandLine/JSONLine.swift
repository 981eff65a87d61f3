internal import SocialEvents

/// A JSON object on one line, its members in the order in which they are added.
package struct JSONLine {
  private var bytes: [UInt8] = Array("{".utf8)

  func member(_ name: String, _ value: String) -> JSONLine { adding(name) { appendJSONString(value, to: &$0) } }
  func member(_ name: String, _ value: Int) -> JSONLine { raw(name, String(value)) }
  func member(_ name: String, _ value: Bool) -> JSONLine { raw(name, value ? "true" : "false") }

  /// A member whose value is JSON already.
  func raw(_ name: String, _ json: String) -> JSONLine { adding(name) { $0.append(contentsOf: json.utf8) } }

  package var closed: String { String(decoding: bytes + [UInt8(ascii: "}")], as: UTF8.self) }

  private func adding(_ name: String, _ value: (inout [UInt8]) -> Void) -> JSONLine {
    var copy = self
    if copy.bytes.count > 1 { copy.bytes.append(UInt8(ascii: ",")) }
    appendJSONString(name, to: &copy.bytes)
    copy.bytes.append(UInt8(ascii: ":"))
    value(&copy.bytes)
    return copy
  }
}
