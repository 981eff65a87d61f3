extension Identifier where Kind == EventKind {
  /// A UUIDv7 (RFC 9562), which SPEC 2 recommends: such ids sort by their time.
  /// - Parameters:
  ///   - milliseconds: since 1970 UTC. Only the 48 bits that a UUID has room for count, which last until the year 10889.
  ///   - generator: where the other 74 bits come from.
  public static func version7(
    milliseconds: UInt64, using generator: inout some RandomNumberGenerator
  ) -> EventID {
    let high = milliseconds << 16 | 0x7000 | generator.next() & 0x0FFF
    let low = 0x8000_0000_0000_0000 | generator.next() >> 2
    var text: [UInt8] = []
    text.reserveCapacity(36)
    for digit in 0..<32 {
      if digit == 8 || digit == 12 || digit == 16 || digit == 20 { text.append(UInt8(ascii: "-")) }
      let word = digit < 16 ? high : low
      text.append(hexDigit(UInt8(truncatingIfNeeded: word >> UInt64(60 - digit % 16 * 4) & 0x0F)))
    }
    return EventID(unchecked: String(decoding: text, as: UTF8.self))
  }
}
