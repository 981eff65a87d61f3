public import SocialEvents

/// What decides which of two assertions about the same thing holds: time, then event id by bytes (SPEC 1).
public struct Version: Hashable, Comparable, Sendable {
  public let time: Timestamp
  public let event: EventID

  public init(time: Timestamp, event: EventID) {
    self.time = time
    self.event = event
  }

  public static func < (a: Self, b: Self) -> Bool {
    a.time != b.time ? a.time < b.time : a.event < b.event
  }
}
