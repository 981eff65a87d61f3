internal import FanoutStore
package import FanoutWorker
internal import Kafka
package import SocialEvents

/// Dead letters for machines. Texts are escaped further than JSON requires, as the lines may be looked at on a terminal.
package enum LetterJSON {
  /// All but the record's bytes.
  static func common(_ letter: StoredLetter, _ state: LetterState) -> JSONLine {
    let origin = letter.origin
    var json = JSONLine().member("id", letter.id.description)
      .member("since", letterTime(letter.record.timestampMilliseconds)).member("state", state.rawValue)
      .raw("reason", SafeText.json(letter.reason))
    if let message = origin.message { json = json.raw("message", SafeText.json(message)) }
    if let topic = origin.topic { json = json.raw("topic", SafeText.json(topic)) }
    if let partition = origin.partition { json = json.raw("partition", String(partition)) }
    if let offset = origin.offset { json = json.raw("offset", String(offset)) }
    if let time = origin.timestampMilliseconds { json = json.member("timestamp", letterTime(time)) }
    if let attempt = origin.attempt { json = json.raw("attempt", String(attempt)) }
    if let group = origin.group { json = json.raw("group", SafeText.json(group)) }
    json = json.member("redrives", letter.redriveCount)
    json = json.raw("keyBytes", letter.record.key.map { String($0.count) } ?? "null")
    json = json.raw("valueBytes", letter.record.value.map { String($0.count) } ?? "null")
    guard origin.isStub, let size = origin.size else { return json }
    json = json.raw("originalValueBytes", String(size))
    return origin.sha256.map { json.raw("originalValueSHA256", SafeText.json($0)) } ?? json
  }

  /// With headers, key and value: as text where they are UTF-8, else in hexadecimal.
  package static func whole(_ letter: StoredLetter, _ state: LetterState, _ topics: Topics) -> JSONLine {
    let record = letter.record
    let headers = record.headers.map { header in
      bytes(JSONLine().raw("name", SafeText.json(header.name)), "value", header.value).closed
    }
    var json = common(letter, state).raw("headers", "[\(headers.joined(separator: ","))]")
    json = bytes(json, "key", record.key)
    json = bytes(json, "value", record.value)
    switch LetterContent(letter, topics) {
    case .event(let event): return json.raw("event", event)
    case .invalid(let error):
      return json.member("reasonNow", error.reason.rawValue).raw("messageNow", SafeText.json(error.detail))
    case .none: return json
    }
  }

  private static func bytes(_ json: JSONLine, _ name: String, _ bytes: [UInt8]?) -> JSONLine {
    guard let bytes else { return json.raw(name, "null") }
    if let text = SafeText.string(bytes) { return json.raw(name, SafeText.json(text)) }
    return json.member(name + "Hex", hexadecimal(bytes))
  }
}

/// What the decoder makes of a letter now, which may not be what it made of it then.
enum LetterContent {
  /// As one line of structured JSON.
  case event(String)
  case invalid(InvalidEvent)
  /// A task, a null value, or a stub.
  case none

  init(_ letter: StoredLetter, _ topics: Topics) {
    if letter.origin.topic == topics.tasks || letter.origin.isStub {
      self = .none
      return
    }
    switch letter.decoded() {
    case nil: self = .none
    case .failure(let error)?: self = .invalid(error)
    case .success(let event)?:
      var bytes: [UInt8] = []
      do throws(InvalidEvent) {
        try EventEncoder().appendStructured(event, to: &bytes)
        self = .event(SafeText.json(document: String(decoding: bytes, as: UTF8.self)))
      } catch {
        self = .invalid(error)
      }
    }
  }
}
