import Foundation
import SocialEvents

/// SPEC 2 once more, on top of Foundation: `JSONSerialization` decides what is JSON, `JSONDecoder` what the members are.
///
/// Nothing of the decoder under test is used here, so that the two can only agree if both are right.
enum ReferenceDecoder {
  static func structured(_ bytes: [UInt8]) throws(InvalidEvent) -> (event: Event, data: Range<Int>) {
    let json = try json(bytes)
    let members = decoded(Envelope.self, json)
    // The same order as the decoder under test promises.
    guard let members else { throw InvalidEvent(.notJSON, "") }
    let specversion = try members.specversion.required()
    if specversion != "1.0" { throw InvalidEvent(.illTypedMember, "") }
    let id = try EventID.checked(members.id.required(), mayBeBlank: true)
    let source = try members.source.required()
    if source.isEmpty { throw InvalidEvent(.illTypedMember, "") }
    let typeName = try members.type.required()
    guard let type = EventType(rawValue: typeName) else { throw InvalidEvent(.unknownType, "") }
    let time = try referenceTime(members.time.required())
    let data = try members.data.required()
    guard let range = RawMembers(bytes)["data"] else { throw InvalidEvent(.missingMember, "") }
    let assertion = try assertion(type, data, Array(bytes[range]))
    var traceparent: String?
    if case .value(let text) = members.traceparent, 1...128 ~= text.utf8.count,
      text.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
    {
      traceparent = text
    }
    return (Event(id: id, source: source, time: time, assertion: assertion, traceparent: traceparent), range)
  }

  /// The value of a record in binary mode whose attributes are good.
  static func data(_ type: EventType, _ bytes: [UInt8]) throws(InvalidEvent) -> Assertion {
    guard let members = decoded(Payload.self, try json(bytes)) else { throw InvalidEvent(.notJSON, "") }
    return try assertion(type, members, bytes)
  }

  private static func json(_ bytes: [UInt8]) throws(InvalidEvent) -> Data {
    if bytes.count > 65_536 { throw InvalidEvent(.tooLarge, "") }
    guard let data = FoundationDeviations.mended(bytes),
      (try? JSONSerialization.jsonObject(with: data)) is [String: Any]
    else { throw InvalidEvent(.notJSON, "") }
    return data
  }

  private static func decoded<T: Decodable>(_: T.Type, _ json: Data) -> T? {
    try? JSONDecoder().decode(T.self, from: json)
  }

  private static func assertion(
    _ type: EventType, _ data: Payload, _ bytes: [UInt8]
  ) throws(InvalidEvent) -> Assertion {
    func user(_ member: Member<String>) throws(InvalidEvent) -> UserID { try .checked(member.required()) }
    func post() throws(InvalidEvent) -> Post {
      Post(author: try user(data.author), id: try .checked(data.post.required()))
    }
    func edge(_ kind: EdgeKind) throws(InvalidEvent) -> Edge {
      let actor = try user(data.actor)
      switch kind {
      case .like: return .like(actor: actor, post: try post())
      case .favorite: return .favorite(actor: actor, post: try post())
      case .follow:
        let target = try user(data.target)
        if Array(actor.string.utf8) == Array(target.string.utf8) { throw InvalidEvent(.selfFollow, "") }
        return try .follow(actor: actor, target: target)
      }
    }
    func present(_ kind: EdgeKind) throws(InvalidEvent) -> Assertion {
      let edge = try edge(kind)
      let silent = try data.silent.optional() ?? false
      guard try data.extra.optional() != nil, let range = RawMembers(bytes)["extra"] else {
        return .present(edge, silent: silent, extra: nil)
      }
      if range.count > 4096 { throw InvalidEvent(.extraTooLarge, "") }
      return .present(edge, silent: silent, extra: String(decoding: bytes[range], as: UTF8.self))
    }
    switch type {
    case .follow: return try present(.follow)
    case .like: return try present(.like)
    case .favorite: return try present(.favorite)
    case .unfollow: return .absent(try edge(.follow))
    case .unlike: return .absent(try edge(.like))
    case .unfavorite: return .absent(try edge(.favorite))
    case .postPublished:
      let post = try post()
      guard let text = try data.publishedAt.optional() else { return .published(post, publishedAt: nil) }
      return .published(post, publishedAt: try referenceTime(text))
    case .postDeleted: return .deleted(try post())
    case .feedbackSeen: return .seen(try user(data.user), upTo: try referenceTime(data.upTo.required()))
    }
  }
}

// MARK: Members

/// What `JSONDecoder` finds under a name.
private enum Member<Value: Decodable> {
  case absent, null, illTyped
  case value(Value)

  func required() throws(InvalidEvent) -> Value {
    switch self {
    case .absent: throw InvalidEvent(.missingMember, "")
    case .null, .illTyped: throw InvalidEvent(.illTypedMember, "")
    case .value(let value): return value
    }
  }

  func optional() throws(InvalidEvent) -> Value? {
    switch self {
    case .absent, .null: return nil
    default: return try required()
    }
  }
}

extension KeyedDecodingContainer {
  fileprivate func member<Value: Decodable>(_ key: Key) -> Member<Value> {
    if !contains(key) { return .absent }
    if (try? decodeNil(forKey: key)) == true { return .null }
    return (try? decode(Value.self, forKey: key)).map { .value($0) } ?? .illTyped
  }
}

private struct Envelope: Decodable {
  let specversion, id, source, type, time, traceparent: Member<String>
  let data: Member<Payload>

  enum CodingKeys: CodingKey { case specversion, id, source, type, time, traceparent, data }

  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: CodingKeys.self)
    specversion = members.member(.specversion)
    id = members.member(.id)
    source = members.member(.source)
    type = members.member(.type)
    time = members.member(.time)
    traceparent = members.member(.traceparent)
    data = members.member(.data)
  }
}

private struct Payload: Decodable {
  let actor, target, author, post, publishedAt, user, upTo: Member<String>
  let silent: Member<Bool>
  let extra: Member<AnyObject>

  /// Any JSON object.
  struct AnyObject: Decodable {
    enum CodingKeys: CodingKey {}
    init(from decoder: any Decoder) throws { _ = try decoder.container(keyedBy: CodingKeys.self) }
  }

  enum CodingKeys: CodingKey { case actor, target, author, post, publishedAt, user, upTo, silent, extra }

  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: CodingKeys.self)
    actor = members.member(.actor)
    target = members.member(.target)
    author = members.member(.author)
    post = members.member(.post)
    publishedAt = members.member(.publishedAt)
    user = members.member(.user)
    upTo = members.member(.upTo)
    silent = members.member(.silent)
    extra = members.member(.extra)
  }
}

// MARK: Values

extension Identifier {
  fileprivate static func checked(_ text: String, mayBeBlank: Bool = false) throws(InvalidEvent) -> Self {
    let isFine =
      1...128 ~= text.utf8.count && !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
      && (mayBeBlank || text.unicodeScalars.contains { !$0.properties.isWhitespace })
    if !isFine { throw InvalidEvent(.invalidIdentifier, "") }
    return try Self(text)
  }
}

private let rfc3339 = try? NSRegularExpression(
  pattern: #"\A([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"#
    + #"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))\z"#)

/// RFC 3339 by a regular expression and the C library's calendar.
func referenceTime(_ text: String) throws(InvalidEvent) -> Timestamp {
  let all = NSRange(text.startIndex..., in: text)
  guard let match = rfc3339?.firstMatch(in: text, range: all) else { throw InvalidEvent(.illTypedMember, "") }
  func group(_ number: Int) -> String? { Range(match.range(at: number), in: text).map { String(text[$0]) } }
  func number(_ index: Int) -> Int { group(index).flatMap { Int($0) } ?? 0 }
  var date = unsafe tm()
  unsafe (date.tm_year, date.tm_mon, date.tm_mday) = (Int32(number(1)) - 1900, Int32(number(2)) - 1, Int32(number(3)))
  let midnight = unsafe timegm(&date)
  // The C library turns a 30th of February into a day of March.
  let isRealDay = unsafe date.tm_mday == Int32(number(3)) && date.tm_mon == Int32(number(2)) - 1
  guard isRealDay, number(4) < 24, number(5) < 60, number(6) <= 60, number(9) < 24, number(10) < 60 else {
    throw InvalidEvent(.illTypedMember, "")
  }
  var seconds = midnight + number(4) * 3600 + number(5) * 60 + number(6)
  seconds -= (group(8) == "-" ? -1 : 1) * (number(9) * 3600 + number(10) * 60)
  if seconds < 0 { throw InvalidEvent(.timeBefore1970, "") }
  if seconds >= 253_402_300_800 { throw InvalidEvent(.illTypedMember, "") }
  let fraction = ((group(7) ?? "") + "000000").prefix(6)
  return Timestamp(microseconds: Int64(seconds) * 1_000_000 + (Int64(fraction) ?? 0))
}
