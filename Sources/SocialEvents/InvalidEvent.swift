/// Why a record is not an event (SPEC 2, "Invalid"): a stable code for machines and a sentence for people.
public struct InvalidEvent: Error, Equatable, Sendable, CustomStringConvertible {
  /// The codes that go into the `fanout.dlq.reason` header. Their spelling is stable.
  public enum Reason: String, CaseIterable, Sendable {
    /// The value is not UTF-8 or not JSON, or its top level is not an object.
    case notJSON = "not-json"
    /// `type` is none of the types of SPEC 2.
    case unknownType = "unknown-type"
    /// A member or attribute that the event needs is absent.
    case missingMember = "missing-member"
    /// A member has a value of the wrong JSON type, or a time that is not RFC 3339.
    case illTypedMember = "ill-typed-member"
    /// An id, user or post breaks the byte rules of SPEC 1.
    case invalidIdentifier = "invalid-identifier"
    /// `actor` and `target` of a follow are the same user.
    case selfFollow = "self-follow"
    /// `extra` is longer than 4 KiB.
    case extraTooLarge = "extra-too-large"
    /// The record's value is longer than 64 KiB.
    case tooLarge = "too-large"
    /// A time lies before 1970.
    case timeBefore1970 = "time-before-1970"
    /// A task of `social.fanout-tasks` is not one that a worker wrote.
    case invalidTask = "invalid-task"
    /// The event is valid, but the store does not take what it says, not even alone.
    case refused = "refused"
  }

  public let reason: Reason
  /// Names the member and what is wrong with it, without its value: an event's content stays out of logs.
  public let detail: String

  public init(_ reason: Reason, _ detail: String) {
    self.reason = reason
    self.detail = detail
  }

  public var description: String { "\(reason.rawValue): \(detail)" }
}
