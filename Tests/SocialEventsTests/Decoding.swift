import SocialEvents

/// A record as tests write it down.
struct Record: Sendable {
  var headers: [(name: String, value: [UInt8]?)]
  var value: [UInt8]

  init(headers: [(name: String, value: [UInt8]?)] = [], value: some Sequence<UInt8>) {
    self.headers = headers
    self.value = Array(value)
  }

  /// A record in binary mode with good attributes, except for those in `changes` (nil takes one away).
  static func binary(
    type: String = "follow", _ data: String, changes: KeyValuePairs<String, String?> = [:]
  ) -> Record {
    var headers: [(name: String, value: [UInt8]?)] = [
      ("ce_specversion", Array("1.0".utf8)), ("ce_id", Array("e1".utf8)), ("ce_source", Array("/test".utf8)),
      ("ce_type", Array(type.utf8)), ("ce_time", Array("2012-07-04T00:00:00Z".utf8)),
    ]
    for (name, value) in changes {
      headers.removeAll { $0.name == name }
      if let value { headers.append((name, Array(value.utf8))) }
    }
    return Record(headers: headers, value: data.utf8)
  }

  func decoded(by decoder: inout EventDecoder) throws(InvalidEvent) -> Event {
    decoder.begin()
    for (name, value) in headers {
      let name = Array(name.utf8)
      if let value {
        decoder.header(name: name.span, value: value.span)
      } else {
        decoder.header(name: name.span, value: nil)
      }
    }
    return try decoder.decode(value: value.span)
  }

  func decoded() throws(InvalidEvent) -> Event {
    var decoder = EventDecoder()
    return try decoded(by: &decoder)
  }
}

/// A structured event with good members, except for those in `changes` (nil takes one away). All are JSON.
func structured(_ changes: KeyValuePairs<String, String?> = [:]) -> String {
  var members = [
    ("specversion", #""1.0""#), ("id", #""e1""#), ("source", #""/test""#), ("type", #""follow""#),
    ("time", #""2012-07-04T00:00:00Z""#), ("data", #"{"actor":"a","target":"b"}"#),
  ]
  for (name, value) in changes {
    if let index = members.firstIndex(where: { $0.0 == name }) { members.remove(at: index) }
    if let value { members.append((name, value)) }
  }
  return "{" + members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
}

func decode(_ text: String) throws(InvalidEvent) -> Event {
  try decode(Array(text.utf8))
}

func decode(_ bytes: [UInt8]) throws(InvalidEvent) -> Event {
  try EventDecoder.decodeStructured(bytes.span).event
}

/// The reason why `body` throws, or nil.
func reason<T>(_ body: () throws(InvalidEvent) -> T) -> InvalidEvent.Reason? {
  do throws(InvalidEvent) {
    _ = try body()
    return nil
  } catch {
    return error.reason
  }
}
