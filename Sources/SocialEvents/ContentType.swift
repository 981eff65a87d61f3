/// What a record's `content-type` header says about its value (SPEC 3).
enum ContentType {
  /// JSON.
  case json
  /// A whole CloudEvent as JSON.
  case structured
  /// Several CloudEvents in one record.
  case batch
  case unsupported

  init(_ value: Span<UInt8>) {
    // Parameters such as charset say nothing that JSON leaves open.
    var end = 0
    while end < value.count && value[end] != UInt8(ascii: ";") { end += 1 }
    var start = 0
    while start < end && value[start].isBlank { start += 1 }
    while end > start && value[end - 1].isBlank { end -= 1 }
    let type = value.extracting(start..<end)
    if type.equalsIgnoringCase("application/cloudevents+json") {
      self = .structured
    } else if type.equalsIgnoringCase("application/cloudevents-batch+json") {
      self = .batch
    } else if type.equalsIgnoringCase("application/json")
      || type.count > 5 && type.extracting(last: 5).equalsIgnoringCase("+json")
    {
      self = .json
    } else {
      self = .unsupported
    }
  }

  @inline(__always)
  func check() throws(InvalidEvent) {
    switch self {
    case .json, .structured: break
    case .batch: throw InvalidEvent(.illTypedMember, "content-type is a batch of events, a record holds one")
    case .unsupported: throw InvalidEvent(.illTypedMember, "content-type is not a JSON one")
    }
  }
}

extension UInt8 {
  fileprivate var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}

extension Span<UInt8> {
  /// Whether the bytes are those of `text`, which has no upper-case letters, in any case.
  func equalsIgnoringCase(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    for index in 0..<count {
      let byte = self[index]
      let isUpperCase = UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
      if unsafe (isUpperCase ? byte | 0x20 : byte) != text.utf8Start[index] { return false }
    }
    return true
  }
}
