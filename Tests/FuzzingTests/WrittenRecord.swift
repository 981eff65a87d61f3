import Kafka
import SocialEvents

/// A record, written down: a line `name: value` for each header, an empty line, and the value.
///
/// Without an empty line all of it is the value, so that a file of JSON is a record, too. A line without `": "` is a header with
/// a null value. Two lines are no headers: `@key: …`, and `@time: …`, the record's timestamp in milliseconds.
struct WrittenRecord {
  var key: [UInt8]?
  var time: Int64?
  var headers: [(name: [UInt8], value: [UInt8]?)] = []
  var value: [UInt8]

  init(headers: [(name: String, value: String)], value: [UInt8], time: Int64? = nil) {
    self.headers = headers.map { (Array($0.name.utf8), Array($0.value.utf8)) }
    self.value = value
    self.time = time
  }

  init(_ bytes: [UInt8]) {
    let lineFeed = UInt8(ascii: "\n")
    guard let end = bytes.indices.dropLast().first(where: { bytes[$0] == lineFeed && bytes[$0 + 1] == lineFeed }) else {
      value = bytes
      return
    }
    value = Array(bytes[(end + 2)...])
    for line in bytes[..<end].split(separator: lineFeed) {
      guard
        let colon = line.indices.dropLast().first(where: {
          line[$0] == UInt8(ascii: ":") && line[$0 + 1] == UInt8(ascii: " ")
        })
      else {
        headers.append((Array(line), nil))
        continue
      }
      let (name, value) = (Array(line[..<colon]), Array(line[(colon + 2)...]))
      switch String(decoding: name, as: UTF8.self) {
      case "@key": key = value
      case "@time": time = Int64(String(decoding: value, as: UTF8.self))
      default: headers.append((name, value))
      }
    }
  }

  func decoded() throws(InvalidEvent) -> Event {
    var decoder = EventDecoder()
    for (name, value) in headers {
      if let value {
        decoder.header(name: name.span, value: value.span)
      } else {
        decoder.header(name: name.span, value: nil)
      }
    }
    return try decoder.decode(value: value.span)
  }

  /// As it would lie in the dead letters.
  var letter: OwnedRecord {
    OwnedRecord(
      partition: TopicPartition(topic: Topics().deadLetters, partition: 3), offset: 17, timestampMilliseconds: time,
      key: key, value: value,
      headers: headers.map { Header(name: String(decoding: $0.name, as: UTF8.self), value: $0.value) })
  }
}
