/// Decodes the value and headers of a Kafka record into an event, and refuses what SPEC 2 calls invalid.
///
/// Reuse one decoder for many records: ``begin()``, then ``header(name:value:)`` for each header, then ``decode(value:)``.
///
/// Whatever else is wrong, a value that is not JSON is reported as that. Other faults are reported in a fixed order: content
/// type, attributes, `data`, and its members, so that the same record always gets the same reason.
public struct EventDecoder: Sendable {
  /// The most bytes that a record's value may have (SPEC 2).
  public static var maximumLength: Int { 65_536 }
  /// The most bytes that `extra` may have (SPEC 2).
  public static var maximumExtraLength: Int { 4096 }

  private var attributes = EventAttributes()
  private var hasAttributeHeader = false
  /// Nil without such a header.
  private var contentType: ContentType?

  public init() {}

  /// Starts a record: forgets the headers of the one before.
  public mutating func begin() {
    self = EventDecoder()
  }

  /// Takes a header of the record (SPEC 3). Of headers with the same name the first one counts; unknown ones are ignored.
  /// - Parameters:
  ///   - name: `ce_…`, `traceparent` (both exact) or `content-type` (in any case).
  ///   - value: nil, a null header value, counts as no header.
  public mutating func header(name: Span<UInt8>, value: Span<UInt8>?) {
    guard let value else { return }
    if name.count > 3 && name.extracting(first: 3).equals("ce_") {
      hasAttributeHeader = true
      switch name.count {
      case 5 where name.equals("ce_id"): take(.id, value)
      case 7 where name.equals("ce_type"): take(.type, value)
      case 7 where name.equals("ce_time"): take(.time, value)
      case 9 where name.equals("ce_source"): take(.source, value)
      case 14 where name.equals("ce_specversion"): take(.specversion, value)
      default: break
      }
    } else if name.count == 11 && name.equals("traceparent") {
      attributes.takeTraceparent(value)
    } else if name.count == 12 && contentType == nil && name.equalsIgnoringCase("content-type") {
      contentType = ContentType(value)
    }
  }

  private mutating func take(_ name: EventAttributes.Name, _ value: Span<UInt8>) {
    if value.isGraphicASCII || value.isUTF8 {
      attributes.take(name, value)
    } else {
      attributes.refuse(name, "is not UTF-8")
    }
  }

  /// Decodes the value of the record whose headers were given since ``begin()``.
  ///
  /// The mode (SPEC 3) is structured if the content type says so, else binary if there is any `ce_` header, else structured
  /// again. A null value is a tombstone and not for this decoder.
  /// - Throws: `InvalidEvent` with any of the reasons of SPEC 2.
  public func decode(value: Span<UInt8>) throws(InvalidEvent) -> Event {
    if contentType != .structured && hasAttributeHeader {
      try Self.checkLength(value)
      var members = EventMembers()
      do throws(JSONFault) {
        try members.scanData(value)
      } catch {
        throw error.invalidEvent
      }
      try contentType?.check()
      var attributes = attributes
      return try Self.event(&attributes, members, value)
    }
    return try Self.structured(value, traceparent: attributes.traceparent, contentType: contentType ?? .json).event
  }

  /// Decodes one structured event, such as a line of NDJSON.
  /// - Returns: the event, and where in `bytes` its `data` object is, so that a producer can forward it unchanged.
  /// - Throws: `InvalidEvent` with any of the reasons of SPEC 2.
  public static func decodeStructured(_ bytes: Span<UInt8>) throws(InvalidEvent) -> (event: Event, data: Range<Int>) {
    try structured(bytes, traceparent: nil, contentType: .structured)
  }

  @inline(__always)
  private static func structured(
    _ bytes: Span<UInt8>, traceparent: String?, contentType: ContentType
  ) throws(InvalidEvent) -> (event: Event, data: Range<Int>) {
    try checkLength(bytes)
    var members = EventMembers()
    do throws(JSONFault) {
      try members.scanEvent(bytes)
    } catch {
      throw error.invalidEvent
    }
    try contentType.check()

    var attributes = EventAttributes()
    attributes.traceparent = traceparent
    for name in EventAttributes.Name.allCases {
      let token = members[name.member]
      switch token.kind {
      case .absent: break
      case .string where !token.isEscaped: attributes.take(name, bytes.extracting(token.range))
      case .string: attributes.take(name, bytes.unescaped(token).span)
      default: attributes.refuse(name, "is not a string")
      }
    }
    let token = members[.traceparent]
    if token.kind == .string {
      if token.isEscaped {
        attributes.takeTraceparent(bytes.unescaped(token).span)
      } else {
        attributes.takeTraceparent(bytes.extracting(token.range))
      }
    }
    return (try event(&attributes, members, bytes), members[.data].range)
  }

  private static func checkLength(_ bytes: Span<UInt8>) throws(InvalidEvent) {
    if bytes.count > maximumLength {
      throw InvalidEvent(.tooLarge, "the value is \(bytes.count) bytes long, \(maximumLength) are allowed")
    }
  }

  /// - Parameter attributes: used up, which saves counting references to their strings.
  @inline(__always)
  private static func event(
    _ attributes: inout EventAttributes, _ members: borrowing EventMembers, _ bytes: Span<UInt8>
  ) throws(InvalidEvent) -> Event {
    try attributes.check()
    guard let id = attributes.id.take(), let source = attributes.source.take(), let type = attributes.type,
      let time = attributes.time
    else { throw InvalidEvent(.missingMember, "an attribute is missing") }
    switch members[.data].kind {
    case .object: break
    case .absent: throw InvalidEvent(.missingMember, "data is missing")
    default: throw InvalidEvent(.illTypedMember, "data is not an object")
    }
    return Event(
      id: id, source: source, time: time, assertion: try members.assertion(type, bytes),
      traceparent: attributes.traceparent.take())
  }
}

extension JSONFault {
  var invalidEvent: InvalidEvent { InvalidEvent(.notJSON, "\(problem), at byte \(position)") }
}
