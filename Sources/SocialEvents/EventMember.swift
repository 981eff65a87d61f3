/// The members of an event's JSON object and of its `data` that mean something (SPEC 2).
enum EventMember: Int, CaseIterable {
  case specversion, id, source, type, time, traceparent, data
  case actor, target, author, post, publishedAt, user, upTo, silent, extra

  var name: StaticString {
    switch self {
    case .specversion: "specversion"
    case .id: "id"
    case .source: "source"
    case .type: "type"
    case .time: "time"
    case .traceparent: "traceparent"
    case .data: "data"
    case .actor: "actor"
    case .target: "target"
    case .author: "author"
    case .post: "post"
    case .publishedAt: "publishedAt"
    case .user: "user"
    case .upTo: "upTo"
    case .silent: "silent"
    case .extra: "extra"
    }
  }

  /// The member of a structured event that `name` names.
  @inline(__always)
  static func ofEvent(_ name: Span<UInt8>) -> EventMember? {
    switch name.count {
    case 2: name.equals("id") ? .id : nil
    case 4: name.equals("type") ? .type : name.equals("time") ? .time : name.equals("data") ? .data : nil
    case 6: name.equals("source") ? .source : nil
    case 11: name.equals("specversion") ? .specversion : name.equals("traceparent") ? .traceparent : nil
    default: nil
    }
  }

  /// The member of `data` that `name` names.
  @inline(__always)
  static func ofData(_ name: Span<UInt8>) -> EventMember? {
    switch name.count {
    case 4: name.equals("post") ? .post : name.equals("user") ? .user : name.equals("upTo") ? .upTo : nil
    case 5: name.equals("actor") ? .actor : name.equals("extra") ? .extra : nil
    case 6: name.equals("author") ? .author : name.equals("target") ? .target : name.equals("silent") ? .silent : nil
    case 11: name.equals("publishedAt") ? .publishedAt : nil
    default: nil
    }
  }
}

/// The members found in one pass over an event's JSON: where each value is, not yet what it says.
///
/// All of them are looked for, whatever the type, because `type` may come after `data`. Of members with the same name the
/// first one counts, as in Foundation's decoder.
struct EventMembers {
  private var tokens = InlineArray<16, JSONToken>(repeating: JSONToken())

  subscript(member: EventMember) -> JSONToken {
    @inline(__always) get { tokens[member.rawValue] }
  }

  /// Scans a whole structured event.
  mutating func scanEvent(_ bytes: Span<UInt8>) throws(JSONFault) {
    var scanner = JSONScanner()
    try start(&scanner, bytes)
    var more = try scanner.enterObject(bytes)
    while more {
      let name = try scanner.memberName(bytes)
      let member = Self.member(name, bytes) { EventMember.ofEvent($0) }
      if member == .data, self[.data].kind == .absent, scanner.position < bytes.count,
        bytes[scanner.position] == UInt8(ascii: "{")
      {
        try scanDataObject(&scanner, bytes, depth: 2)
      } else {
        keep(try scanner.value(bytes, depth: 1), as: member)
      }
      more = try scanner.hasNextMember(bytes)
    }
    try scanner.finish(bytes)
  }

  /// Scans a text that is the data object alone, as in binary mode.
  mutating func scanData(_ bytes: Span<UInt8>) throws(JSONFault) {
    var scanner = JSONScanner()
    try start(&scanner, bytes)
    try scanDataObject(&scanner, bytes, depth: 1)
    try scanner.finish(bytes)
  }

  private func start(_ scanner: inout JSONScanner, _ bytes: Span<UInt8>) throws(JSONFault) {
    scanner.skipByteOrderMark(bytes)
    guard scanner.peek(bytes) == UInt8(ascii: "{") else {
      throw JSONFault("an object was expected", at: scanner.position)
    }
  }

  private mutating func scanDataObject(
    _ scanner: inout JSONScanner, _ bytes: Span<UInt8>, depth: Int
  ) throws(JSONFault) {
    var token = JSONToken(kind: .object)
    token.start = Int32(truncatingIfNeeded: scanner.position)
    var more = try scanner.enterObject(bytes)
    while more {
      let name = try scanner.memberName(bytes)
      let member = Self.member(name, bytes) { EventMember.ofData($0) }
      keep(try scanner.value(bytes, depth: depth), as: member)
      more = try scanner.hasNextMember(bytes)
    }
    token.end = Int32(truncatingIfNeeded: scanner.position)
    keep(token, as: .data)
  }

  @inline(__always)
  private mutating func keep(_ token: JSONToken, as member: EventMember?) {
    if let member, tokens[member.rawValue].kind == .absent { tokens[member.rawValue] = token }
  }

  @inline(__always)
  private static func member(
    _ name: JSONToken, _ bytes: Span<UInt8>, _ find: (Span<UInt8>) -> EventMember?
  ) -> EventMember? {
    if !name.isEscaped { return find(bytes.extracting(name.range)) }
    var text: [UInt8] = []
    bytes.appendUnescaped(name.range, to: &text)
    return find(text.span)
  }
}
