internal import FanoutStore
internal import Kafka
internal import SocialEvents

/// A record that can't be applied, and why (SPEC 3 and 7).
struct DeadLetter: Sendable {
  let record: OwnedRecord
  let reason: InvalidEvent
  let group: String

  /// Names the headers that dead letters carry besides their own.
  enum HeaderName {
    static let prefix = "fanout.dlq."
    static let reason = prefix + "reason"
    static let message = prefix + "message"
    static let topic = prefix + "topic"
    static let partition = prefix + "partition"
    static let offset = prefix + "offset"
    static let timestamp = prefix + "timestamp"
    static let attempt = prefix + "attempt"
    static let group = prefix + "group"
    static let size = prefix + "size"
    static let sha256 = prefix + "sha256"
  }

  /// The most bytes of the reason's text.
  private static let maximumMessage = 1024

  /// The record for the dead-letter topic: key, value and headers as they came, and the reason in `fanout.dlq.…` headers.
  func producerRecord(topic: String) -> ProducerRecord {
    ProducerRecord(
      topic: topic, key: record.key, value: record.value, headers: record.headers.filter(Self.isOriginal) + added,
      timestamp: nil, partition: nil)
  }

  /// Stands for a record that is larger than the dead-letter topic takes: where to find it, its size and its digest.
  func stub(topic: String) -> ProducerRecord {
    let value = record.value ?? []
    var hash = SHA256()
    unsafe value.withUnsafeBytes { unsafe hash.update($0) }
    let described = [
      Header(HeaderName.size, String(value.count)), Header(HeaderName.sha256, hexadecimal(hash.finish())),
    ]
    return ProducerRecord(
      topic: topic, key: record.key.map { Array($0.prefix(1024)) }, value: [], headers: added + described,
      timestamp: nil,
      partition: nil)
  }

  /// About what it takes in memory.
  var byteCount: Int { record.byteCount }

  private var added: [Header] {
    var message = reason.detail
    while message.utf8.count > Self.maximumMessage { message.removeLast() }
    return [
      Header(HeaderName.reason, reason.reason.rawValue),
      Header(HeaderName.message, message),
      Header(HeaderName.topic, record.partition.topic),
      Header(HeaderName.partition, String(record.partition.partition)),
      Header(HeaderName.offset, String(record.offset)),
      Header(HeaderName.timestamp, record.timestampMilliseconds.map(String.init) ?? ""),
      Header(HeaderName.attempt, String(attempt)),
      Header(HeaderName.group, group),
    ]
  }

  /// How often the record has now failed: once more than it says of itself, if it was sent again from the dead letters.
  private var attempt: Int {
    // Other tools that send it leave our header as it is; `dead-letters redrive` takes it off and counts in its own.
    let before = record.headers.last { $0.name == HeaderName.attempt }?.value.flatMap {
      Int(String(decoding: $0, as: UTF8.self))
    }
    return max(0, min(before ?? 0, 1_000_000), StoredLetter.redriveCount(record.headers)) + 1
  }

  private static func isOriginal(_ header: Header) -> Bool { !header.name.hasPrefix(HeaderName.prefix) }

  /// The trace context that the record carries, for log lines; only if it looks like one.
  var traceparent: String? {
    guard let value = record.headers.last(where: { $0.name == "traceparent" })?.value, value.count <= 128,
      value.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
    else { return nil }
    return String(decoding: value, as: UTF8.self)
  }
}
