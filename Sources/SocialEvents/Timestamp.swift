/// A time in whole microseconds since 1970-01-01 00:00 UTC (SPEC 1).
public struct Timestamp: Hashable, Comparable, Sendable {
  public let microseconds: Int64

  public init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  public static func < (a: Self, b: Self) -> Bool { a.microseconds < b.microseconds }

  /// How far an event's own time may lie after its record's before it is not believed (SPEC 2, "Clocks lie").
  public static let clockTolerance: Int64 = 5 * 60 * 1_000_000

  /// The clock rule of SPEC 2: this time, or `recorded` if this time lies more than five minutes after it.
  /// - Parameter recorded: the Kafka record's timestamp; nil (the record carries none) believes this time.
  public func believed(recorded: Timestamp?) -> Timestamp {
    guard let recorded, microseconds > recorded.microseconds + Self.clockTolerance else { return self }
    return recorded
  }
}
