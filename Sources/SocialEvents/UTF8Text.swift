extension String {
  /// The text of bytes that are known to be UTF-8; others would be repaired, never trusted.
  @inline(__always)
  init(utf8 bytes: Span<UInt8>) {
    self = unsafe bytes.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
  }
}

extension Span<UInt8> {
  /// Whether every byte is ASCII and neither a space nor a control character.
  @inline(__always)
  var isGraphicASCII: Bool {
    var at = 0
    while at <= count - 8 {
      let word = word(at: at)
      let top = UInt64(repeating: 0x80)
      // Adding one carries a DEL into the top bit, and nothing into the next byte, as no top bit is set.
      let afterLast = (word & ~top) &+ UInt64(repeating: 1)
      if (word | word.bytes(lessThan: 0x21) | afterLast) & top != 0 { return false }
      at += 8
    }
    while at < count {
      if self[at] <= 0x20 || self[at] >= 0x7F { return false }
      at += 1
    }
    return true
  }

  /// Whether the bytes are UTF-8.
  var isUTF8: Bool {
    (try? UTF8Span(validating: self)) != nil
  }

  /// Whether the bytes are those of `name`, which has 1 to 16 bytes.
  @inline(__always)
  func equals(_ name: StaticString) -> Bool {
    guard count == name.utf8CodeUnitCount else { return false }
    for index in 0..<count where unsafe self[index] != name.utf8Start[index] { return false }
    return true
  }
}
