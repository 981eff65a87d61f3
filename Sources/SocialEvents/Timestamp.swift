/// A time in whole microseconds since 1970-01-01 00:00 UTC (SPEC 1).
public struct Timestamp: Hashable, Comparable, Sendable {
  public let microseconds: Int64

  public init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  /// A time in milliseconds, as Kafka has them; one beyond what fits is the latest time there is.
  public init(milliseconds: Int64) {
    let (microseconds, isBeyond) = milliseconds.multipliedReportingOverflow(by: 1000)
    self.microseconds = isBeyond ? (milliseconds < 0 ? .min : .max) : microseconds
  }

  public static func < (a: Self, b: Self) -> Bool { a.microseconds < b.microseconds }

  /// How far an event's own time may lie after its record's before it is not believed (SPEC 2, "Clocks lie").
  public static let clockTolerance: Int64 = 5 * 60 * 1_000_000

  /// The clock rule of SPEC 2: this time, or `recorded` if this time lies more than five minutes after it.
  /// - Parameter recorded: the Kafka record's timestamp; nil (the record carries none) believes this time.
  public func believed(recorded: Timestamp?) -> Timestamp {
    guard let recorded else { return self }
    // Records bring any number there is, so the sum may be none.
    let (limit, isBeyond) = recorded.microseconds.addingReportingOverflow(Self.clockTolerance)
    return isBeyond || microseconds <= limit ? self : recorded
  }
}
