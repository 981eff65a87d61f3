/// Writes events as SPEC 2 and 3 have them, so that ``EventDecoder`` reads the same event back.
///
/// What can't be read back is refused rather than written: an empty `source`, a time outside the years 1970 to 9999, an
/// `extra` that is not a JSON object or too long. A trace context that the decoder would ignore is left out.
public struct EventEncoder: Sendable {
  public init() {}

  /// Appends the `data` object: a record's value in binary mode (SPEC 3).
  /// - Throws: `InvalidEvent` if ``EventDecoder`` would refuse the event; nothing is appended then.
  public func appendData(of event: Event, to bytes: inout [UInt8]) throws(InvalidEvent) {
    try Self.check(event)
    let start = bytes.count
    Self.appendAssertion(event.assertion, onOneLine: false, to: &bytes)
    try Self.checkLength(&bytes, from: start)
  }

  /// Appends a structured event (SPEC 3) as one line of JSON, without the line feed.
  ///
  /// Line breaks between the tokens of `extra` become spaces, which JSON calls the same.
  /// - Throws: `InvalidEvent` if ``EventDecoder`` would refuse the event; nothing is appended then.
  public func appendStructured(_ event: Event, to bytes: inout [UInt8]) throws(InvalidEvent) {
    try Self.check(event)
    let start = bytes.count
    bytes.append(literal: #"{"specversion":"1.0","id":"#)
    appendJSONString(event.id.string, to: &bytes)
    bytes.append(literal: #","source":"#)
    appendJSONString(event.source, to: &bytes)
    bytes.append(literal: #","type":"#)
    appendJSONString(event.type.rawValue, to: &bytes)
    bytes.append(literal: #","time":"#)
    Self.appendTime(event.time, to: &bytes)
    if let traceparent = Self.traceparent(of: event) {
      bytes.append(literal: #","traceparent":"#)
      appendJSONString(traceparent, to: &bytes)
    }
    bytes.append(literal: #","data":"#)
    Self.appendAssertion(event.assertion, onOneLine: true, to: &bytes)
    bytes.append(UInt8(ascii: "}"))
    try Self.checkLength(&bytes, from: start)
  }

  /// The headers of a record in binary mode (SPEC 3): the attributes, the content type, and the trace context if there is one.
  public func headers(of event: Event) -> [(name: String, value: String)] {
    var headers = [
      (name: "ce_specversion", value: "1.0"),
      (name: "ce_id", value: event.id.string),
      (name: "ce_source", value: event.source),
      (name: "ce_type", value: event.type.rawValue),
      (name: "ce_time", value: event.time.description),
      (name: "content-type", value: "application/json"),
    ]
    if let traceparent = Self.traceparent(of: event) { headers.append((name: "traceparent", value: traceparent)) }
    return headers
  }

  // MARK: What can be read back

  private static func traceparent(of event: Event) -> String? {
    guard let traceparent = event.traceparent, EventAttributes.isTraceparent(traceparent.utf8.span) else { return nil }
    return traceparent
  }

  private static func check(_ event: Event) throws(InvalidEvent) {
    if event.source.isEmpty { throw InvalidEvent(.illTypedMember, "source is empty") }
    try check(event.time, "time")
    switch event.assertion {
    case .present(_, _, let extra?): try check(extra: extra)
    case .published(_, let publishedAt?): try check(publishedAt, "publishedAt")
    case .seen(_, let upTo): try check(upTo, "upTo")
    default: break
    }
  }

  private static func check(_ time: Timestamp, _ member: String) throws(InvalidEvent) {
    if let fault = time.fault { throw fault.invalidEvent(member: member) }
  }

  private static func check(extra: String) throws(InvalidEvent) {
    let bytes = extra.utf8.span
    if bytes.count > EventDecoder.maximumExtraLength {
      throw InvalidEvent(
        .extraTooLarge, "extra is \(bytes.count) bytes long, \(EventDecoder.maximumExtraLength) are allowed")
    }
    // Two levels will be around it in a structured event.
    var scanner = JSONScanner()
    do throws(JSONFault) {
      if try scanner.value(bytes, depth: 2).kind == .object && scanner.position == bytes.count { return }
    } catch {
      // Said below.
    }
    throw InvalidEvent(.illTypedMember, "extra is not an object")
  }

  private static func checkLength(_ bytes: inout [UInt8], from start: Int) throws(InvalidEvent) {
    let length = bytes.count - start
    if length <= EventDecoder.maximumLength { return }
    bytes.removeSubrange(start...)
    throw InvalidEvent(.tooLarge, "the value is \(length) bytes long, \(EventDecoder.maximumLength) are allowed")
  }

  // MARK: The data object

  private static func appendAssertion(_ assertion: Assertion, onOneLine: Bool, to bytes: inout [UInt8]) {
    switch assertion {
    case .present(let edge, let silent, let extra):
      appendEdge(edge, to: &bytes)
      if silent { bytes.append(literal: #","silent":true"#) }
      if let extra {
        bytes.append(literal: #","extra":"#)
        if onOneLine { appendJSONOnOneLine(extra, to: &bytes) } else { bytes.append(contentsOf: extra.utf8.span) }
      }
    case .absent(let edge):
      appendEdge(edge, to: &bytes)
    case .published(let post, let publishedAt):
      appendPost(post, opening: #"{"author":"#, to: &bytes)
      if let publishedAt {
        bytes.append(literal: #","publishedAt":"#)
        appendTime(publishedAt, to: &bytes)
      }
    case .deleted(let post):
      appendPost(post, opening: #"{"author":"#, to: &bytes)
    case .seen(let user, let upTo):
      bytes.append(literal: #"{"user":"#)
      appendJSONString(user.string, to: &bytes)
      bytes.append(literal: #","upTo":"#)
      appendTime(upTo, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  private static func appendEdge(_ edge: Edge, to bytes: inout [UInt8]) {
    bytes.append(literal: #"{"actor":"#)
    appendJSONString(edge.actor.string, to: &bytes)
    if let post = edge.post {
      appendPost(Post(author: edge.recipient, id: post), opening: #","author":"#, to: &bytes)
    } else {
      bytes.append(literal: #","target":"#)
      appendJSONString(edge.recipient.string, to: &bytes)
    }
  }

  private static func appendPost(_ post: Post, opening: StaticString, to bytes: inout [UInt8]) {
    bytes.append(literal: opening)
    appendJSONString(post.author.string, to: &bytes)
    bytes.append(literal: #","post":"#)
    appendJSONString(post.id.string, to: &bytes)
  }

  private static func appendTime(_ time: Timestamp, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    time.appendRFC3339(to: &bytes)
    bytes.append(UInt8(ascii: "\""))
  }
}
