extension EventMembers {
  /// What the scanned `data` asserts (SPEC 2).
  @inline(__always)
  func assertion(_ type: EventType, _ bytes: Span<UInt8>) throws(InvalidEvent) -> Assertion {
    switch type {
    case .follow:
      let edge = try Edge.follow(actor: identifier(.actor, bytes), target: identifier(.target, bytes))
      return try present(edge, bytes)
    case .unfollow:
      return .absent(try Edge.follow(actor: identifier(.actor, bytes), target: identifier(.target, bytes)))
    case .like: return try present(Edge.like(actor: identifier(.actor, bytes), post: post(bytes)), bytes)
    case .unlike: return .absent(Edge.like(actor: try identifier(.actor, bytes), post: try post(bytes)))
    case .favorite: return try present(Edge.favorite(actor: identifier(.actor, bytes), post: post(bytes)), bytes)
    case .unfavorite: return .absent(Edge.favorite(actor: try identifier(.actor, bytes), post: try post(bytes)))
    case .postPublished:
      return .published(try post(bytes), publishedAt: try isGiven(.publishedAt) ? time(.publishedAt, bytes) : nil)
    case .postDeleted: return .deleted(try post(bytes))
    case .feedbackSeen: return .seen(try identifier(.user, bytes), upTo: try time(.upTo, bytes))
    }
  }

  @inline(__always)
  private func post(_ bytes: Span<UInt8>) throws(InvalidEvent) -> Post {
    Post(author: try identifier(.author, bytes), id: try identifier(.post, bytes))
  }

  @inline(__always)
  private func present(_ edge: Edge, _ bytes: Span<UInt8>) throws(InvalidEvent) -> Assertion {
    .present(edge, silent: try silent(), extra: try extra(bytes))
  }

  private func silent() throws(InvalidEvent) -> Bool {
    switch self[.silent].kind {
    case .absent, .null, .false: return false
    case .true: return true
    default: throw InvalidEvent(.illTypedMember, "silent is not a boolean")
    }
  }

  private func extra(_ bytes: Span<UInt8>) throws(InvalidEvent) -> String? {
    guard isGiven(.extra) else { return nil }
    let token = self[.extra]
    guard token.kind == .object else { throw InvalidEvent(.illTypedMember, "extra is not an object") }
    let length = token.range.count
    if length > EventDecoder.maximumExtraLength {
      throw InvalidEvent(
        .extraTooLarge, "extra is \(length) bytes long, \(EventDecoder.maximumExtraLength) are allowed")
    }
    return String(utf8: bytes.extracting(token.range))
  }

  /// Whether an optional member is there: null says that it isn't.
  private func isGiven(_ member: EventMember) -> Bool {
    self[member].kind != .absent && self[member].kind != .null
  }

  private func identifier<Kind>(
    _ member: EventMember, _ bytes: Span<UInt8>
  ) throws(InvalidEvent) -> Identifier<Kind> {
    let token = self[member]
    guard token.kind == .string else { throw illTyped(member, "a string") }
    if token.isEscaped { return try Identifier(utf8: bytes.unescaped(token).span, member: member.name) }
    return try Identifier(utf8: bytes.extracting(token.range), member: member.name)
  }

  private func time(_ member: EventMember, _ bytes: Span<UInt8>) throws(InvalidEvent) -> Timestamp {
    let token = self[member]
    guard token.kind == .string else { throw illTyped(member, "a string") }
    do throws(Timestamp.Fault) {
      if token.isEscaped { return try Timestamp.parse(bytes.unescaped(token).span) }
      return try Timestamp.parse(bytes.extracting(token.range))
    } catch {
      throw error.invalidEvent(member: member.name.description)
    }
  }

  private func illTyped(_ member: EventMember, _ expected: StaticString) -> InvalidEvent {
    if self[member].kind == .absent { return InvalidEvent(.missingMember, "\(member.name) is missing") }
    return InvalidEvent(.illTypedMember, "\(member.name) is not \(expected)")
  }
}

extension Span<UInt8> {
  /// The text of a scanned string.
  func unescaped(_ token: JSONToken) -> [UInt8] {
    var text: [UInt8] = []
    appendUnescaped(token.range, to: &text)
    return text
  }
}
