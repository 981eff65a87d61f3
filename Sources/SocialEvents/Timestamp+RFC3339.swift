extension Timestamp {
  /// Why a text is no time that an event may carry.
  enum Fault: Error {
    case notRFC3339
    case before1970
    /// Its UTC year would have five digits, which RFC 3339 can't spell.
    case after9999

    func invalidEvent(member: String) -> InvalidEvent {
      switch self {
      case .notRFC3339: InvalidEvent(.illTypedMember, "\(member) is not an RFC 3339 time")
      case .before1970: InvalidEvent(.timeBefore1970, "\(member) lies before 1970")
      case .after9999: InvalidEvent(.illTypedMember, "\(member) lies after the year 9999")
      }
    }
  }

  /// Reads an RFC 3339 time (SPEC 2): any offset, up to nine fraction digits, truncated to microseconds. A leap second
  /// (`:60`) is the second after it.
  /// - Throws: `InvalidEvent` with reason `.timeBefore1970`, or `.illTypedMember` for anything else that is wrong.
  public init(rfc3339 text: String) throws(InvalidEvent) {
    do throws(Fault) {
      self = try Self.parse(text.utf8.span)
    } catch {
      throw error.invalidEvent(member: "time")
    }
  }

  static func parse(_ text: Span<UInt8>) throws(Fault) -> Timestamp {
    // The shortest is 2012-07-04T00:00:00Z.
    guard text.count >= 20, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
      text[10] | 0x20 == UInt8(ascii: "t"), text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":")
    else { throw .notRFC3339 }
    let year = try text.twoDigits(at: 0) * 100 + text.twoDigits(at: 2)
    let month = try text.twoDigits(at: 5)
    let day = try text.twoDigits(at: 8)
    let hour = try text.twoDigits(at: 11)
    let minute = try text.twoDigits(at: 14)
    let second = try text.twoDigits(at: 17)
    guard 1...12 ~= month, 1...daysIn(month, of: year) ~= day, hour < 24, minute < 60, second <= 60 else {
      throw .notRFC3339
    }

    var at = 19
    var fraction: Int64 = 0
    if text[at] == UInt8(ascii: ".") {
      at += 1
      let start = at
      var scale: Int64 = 100_000
      while at < text.count, text[at] &- UInt8(ascii: "0") <= 9 {
        fraction += Int64(text[at] - UInt8(ascii: "0")) * scale
        scale /= 10  // Zero from the seventh digit on: truncation.
        at += 1
      }
      guard 1...9 ~= at - start else { throw .notRFC3339 }
    }

    guard at < text.count else { throw .notRFC3339 }
    var offset: Int64 = 0
    if text[at] | 0x20 == UInt8(ascii: "z") {
      at += 1
    } else {
      let sign = text[at]
      guard sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"), at + 6 <= text.count,
        text[at + 3] == UInt8(ascii: ":")
      else { throw .notRFC3339 }
      let hours = try text.twoDigits(at: at + 1)
      let minutes = try text.twoDigits(at: at + 4)
      guard hours < 24, minutes < 60 else { throw .notRFC3339 }
      offset = (hours * 60 + minutes) * 60
      if sign == UInt8(ascii: "-") { offset = -offset }
      at += 6
    }
    guard at == text.count else { throw .notRFC3339 }

    let seconds = daysSince1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    let time = Timestamp(microseconds: seconds * 1_000_000 + fraction)
    if let fault = time.fault { throw fault }
    return time
  }

  /// Why no event may carry this time, or nil.
  var fault: Fault? {
    if microseconds < 0 { return .before1970 }
    // 9999-12-31T23:59:59.999999Z
    if microseconds > 253_402_300_799_999_999 { return .after9999 }
    return nil
  }

  private static func daysIn(_ month: Int64, of year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Counts in years that begin in March, so that the leap day is the last day of its year.
  private static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    // One 400-year cycle is added and taken away so that the year 0000 needs no floor division.
    let marchYear = (month <= 2 ? year - 1 : year) + 400
    let marchMonth = month <= 2 ? month + 9 : month - 3
    let dayOfYear = (153 * marchMonth + 2) / 5 + day - 1
    return marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear - 719_468 - 146_097
  }
}

extension Span<UInt8> {
  @inline(__always)
  fileprivate func twoDigits(at index: Int) throws(Timestamp.Fault) -> Int64 {
    let tens = self[index] &- UInt8(ascii: "0")
    let ones = self[index + 1] &- UInt8(ascii: "0")
    guard tens <= 9, ones <= 9 else { throw .notRFC3339 }
    return Int64(tens * 10 + ones)
  }
}

extension Timestamp: CustomStringConvertible {
  /// The time as RFC 3339 in UTC with six fraction digits, such as `2012-07-04T00:00:00.123456Z`.
  ///
  /// A year outside 0 to 9999, which no event has, gets the sign or the digits that it needs.
  public var description: String {
    let (year, text) = formatted
    if let year { return String(year) + String(utf8: text.span.extracting(droppingFirst: 4)) }
    return String(utf8: text.span)
  }

  /// Appends what ``description`` says.
  package func appendRFC3339(to bytes: inout [UInt8]) {
    let (year, text) = formatted
    if let year {
      bytes.append(contentsOf: String(year).utf8)
      bytes.append(contentsOf: text.span.extracting(droppingFirst: 4))
    } else {
      bytes.append(contentsOf: text.span)
    }
  }

  /// The text, and the year to put in the place of its first four digits if they have no room for it.
  private var formatted: (year: Int64?, text: InlineArray<27, UInt8>) {
    let (seconds, fraction) = microseconds.flooredDivision(by: 1_000_000)
    let (days, secondOfDay) = seconds.flooredDivision(by: 86400)
    // Days since 0000-03-01, in 400-year cycles of years that begin in March.
    let (cycle, dayOfCycle) = (days + 719_468).flooredDivision(by: 146_097)
    let yearOfCycle = (dayOfCycle - dayOfCycle / 1460 + dayOfCycle / 36524 - dayOfCycle / 146_096) / 365
    let dayOfYear = dayOfCycle - (365 * yearOfCycle + yearOfCycle / 4 - yearOfCycle / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
    let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    let year = cycle * 400 + yearOfCycle + (month <= 2 ? 1 : 0)

    var text = InlineArray<27, UInt8>(repeating: UInt8(ascii: "-"))
    let fits = 0...9999 ~= year
    if fits {
      text.setTwoDigits(year / 100, at: 0)
      text.setTwoDigits(year % 100, at: 2)
    }
    text.setTwoDigits(month, at: 5)
    text.setTwoDigits(day, at: 8)
    text[10] = UInt8(ascii: "T")
    text.setTwoDigits(secondOfDay / 3600, at: 11)
    text[13] = UInt8(ascii: ":")
    text.setTwoDigits(secondOfDay / 60 % 60, at: 14)
    text[16] = UInt8(ascii: ":")
    text.setTwoDigits(secondOfDay % 60, at: 17)
    text[19] = UInt8(ascii: ".")
    text.setTwoDigits(fraction / 10_000, at: 20)
    text.setTwoDigits(fraction / 100 % 100, at: 22)
    text.setTwoDigits(fraction % 100, at: 24)
    text[26] = UInt8(ascii: "Z")
    return (fits ? nil : year, text)
  }
}

extension Int64 {
  /// Quotient and remainder, the remainder never negative.
  fileprivate func flooredDivision(by divisor: Int64) -> (Int64, Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

extension InlineArray<27, UInt8> {
  /// - Parameter value: 0 to 99.
  @inline(__always)
  fileprivate mutating func setTwoDigits(_ value: Int64, at index: Int) {
    self[index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value / 10)
    self[index + 1] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value % 10)
  }
}
