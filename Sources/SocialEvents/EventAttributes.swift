/// The CloudEvents attributes of one event (SPEC 2), from record headers or from the members of a structured event.
///
/// A fault is kept rather than thrown, so that the same record gets the same reason in whatever order its parts come.
struct EventAttributes {
  /// In the order in which faults are reported.
  enum Name: UInt8, CaseIterable {
    case specversion, id, source, type, time

    var member: EventMember {
      switch self {
      case .specversion: .specversion
      case .id: .id
      case .source: .source
      case .type: .type
      case .time: .time
      }
    }
  }

  var id: EventID?
  var source: String?
  private(set) var type: EventType?
  private(set) var time: Timestamp?
  var traceparent: String?

  /// One bit for each attribute that was given, right or wrong.
  private var given: UInt8 = 0
  private var fault: InvalidEvent?
  private var faultyName = Name.time

  var isEmpty: Bool { given == 0 }

  /// Takes an attribute's text; of attributes with the same name the first one counts.
  /// - Parameter text: known to be UTF-8.
  @inline(__always)
  mutating func take(_ name: Name, _ text: Span<UInt8>) {
    let bit: UInt8 = 1 << name.rawValue
    if given & bit != 0 { return }
    given |= bit
    do throws(InvalidEvent) {
      switch name {
      case .specversion:
        if !text.equals("1.0") { throw InvalidEvent(.illTypedMember, "specversion is not 1.0") }
      case .id:
        id = try EventID(utf8: text, member: "id")
      case .source:
        if text.isEmpty { throw InvalidEvent(.illTypedMember, "source is empty") }
        source = String(utf8: text)
      case .type:
        type = EventType(utf8: text)
        if type == nil { throw InvalidEvent(.unknownType, "type is none that is known here") }
      case .time:
        do throws(Timestamp.Fault) {
          time = try Timestamp.parse(text)
        } catch {
          throw error.invalidEvent(member: "time")
        }
      }
    } catch {
      note(error, in: name)
    }
  }

  /// Takes note that an attribute was given, but not as text.
  mutating func refuse(_ name: Name, _ problem: StaticString) {
    let bit: UInt8 = 1 << name.rawValue
    if given & bit != 0 { return }
    given |= bit
    note(InvalidEvent(.illTypedMember, "\(name.member.name) \(problem)"), in: name)
  }

  private mutating func note(_ error: InvalidEvent, in name: Name) {
    if fault != nil && faultyName.rawValue < name.rawValue { return }
    fault = error
    faultyName = name
  }

  /// Throws the fault of the first attribute, in the order of ``Name``, that is faulty or missing.
  @inline(__always)
  func check() throws(InvalidEvent) {
    if fault == nil && given == 0b1_1111 { return }
    try report()
  }

  private func report() throws(InvalidEvent) {
    for name in Name.allCases {
      if let fault, faultyName == name { throw fault }
      if given & (1 << name.rawValue) == 0 { throw InvalidEvent(.missingMember, "\(name.member.name) is missing") }
    }
  }

  /// Keeps a trace context if it can be one: anything else isn't worth refusing an event for.
  mutating func takeTraceparent(_ text: Span<UInt8>) {
    if traceparent == nil && Self.isTraceparent(text) { traceparent = String(utf8: text) }
  }

  /// Whether a trace context is one to carry along: short, and safe to print.
  static func isTraceparent(_ text: Span<UInt8>) -> Bool {
    1...128 ~= text.count && text.isGraphicASCII
  }
}

extension EventType {
  /// The type that `text` spells, or nil.
  @inline(__always)
  init?(utf8 text: Span<UInt8>) {
    switch text.count {
    case 4 where text.equals("like"): self = .like
    case 6 where text.equals("follow"): self = .follow
    case 6 where text.equals("unlike"): self = .unlike
    case 8 where text.equals("favorite"): self = .favorite
    case 8 where text.equals("unfollow"): self = .unfollow
    case 10 where text.equals("unfavorite"): self = .unfavorite
    case 12 where text.equals("post-deleted"): self = .postDeleted
    case 13 where text.equals("feedback-seen"): self = .feedbackSeen
    case 14 where text.equals("post-published"): self = .postPublished
    default: return nil
    }
  }
}
