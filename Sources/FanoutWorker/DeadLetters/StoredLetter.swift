package import Kafka
package import SocialEvents

/// A dead letter's name: the partition and the offset where it lies, as in `3:17`.
package struct LetterID: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let partition: Int32
  package let offset: Int64

  package init(partition: Int32, offset: Int64) {
    self.partition = partition
    self.offset = offset
  }

  /// Nil unless the text is a partition and an offset, joined by a colon.
  package init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let partition = Int32(parts[0]), let offset = Int64(parts[1]), partition >= 0,
      offset >= 0, offset < .max
    else { return nil }
    self.init(partition: partition, offset: offset)
  }

  package var description: String { "\(partition):\(offset)" }

  package static func < (a: Self, b: Self) -> Bool { (a.partition, a.offset) < (b.partition, b.offset) }
}

/// A dead letter as it lies in the topic.
package struct StoredLetter: Sendable {
  /// Counts how often a record was sent back: what keeps a letter from going round for ever. It is none of the headers that
  /// workers take off, so it is still there when the record becomes a dead letter again.
  package static let redriveCountHeader = "fanout.redrive.count"

  package let record: OwnedRecord
  package let origin: DeadLetterOrigin

  package init(_ record: OwnedRecord) {
    self.record = record
    origin = DeadLetterOrigin(record.headers)
  }

  package var id: LetterID { LetterID(partition: record.partition.partition, offset: record.offset) }

  /// What lists and filters call a letter that gives no reason.
  package var reason: String { origin.reason ?? "unknown" }

  /// How often it was sent back before.
  package var redriveCount: Int { Self.redriveCount(record.headers) }

  static func redriveCount(_ headers: [Header]) -> Int {
    let text = headers.last { $0.name == redriveCountHeader }?.value.map { String(decoding: $0, as: UTF8.self) }
    return max(0, min(text.flatMap { Int($0) } ?? 0, 1_000_000))
  }

  package enum Way: Sendable {
    case back(ProducerRecord)
    /// It can't be sent back; why, and what to do.
    case left(String)
  }

  /// The record to send back: key, value, headers and timestamp of the original, and the count.
  ///
  /// The timestamp belongs to what the event says, by the rule about clocks that lie (SPEC 2). Where no header tells it, the
  /// letter's own is the nearest that is known. The key chooses the partition; nothing depends on which (SPEC 3).
  package func wayBack(to topics: Topics, maxRedrives: Int) -> Way {
    guard let topic = origin.topic else { return .left("no header says which topic it came from") }
    guard (topics.events + [topics.tasks]).contains(topic) else {
      return .left("it came from \(topic), which is no topic of events or tasks here (see --topic-prefix)")
    }
    if origin.isStub {
      let place = origin.partition.flatMap { partition in origin.offset.map { "\(topic)[\(partition)] at offset \($0)" }
      }
      return .left(
        "its value was too large for the dead letters and is not in it. The original is in \(place ?? topic)")
    }
    let count = redriveCount
    if count >= maxRedrives {
      return .left("it was redriven \(count) times already. --max-redrives \(count + 1) lets it through once more")
    }
    var headers = origin.originalHeaders(record.headers).filter { $0.name != Self.redriveCountHeader }
    headers.append(Header(Self.redriveCountHeader, String(count + 1)))
    return .back(
      ProducerRecord(
        topic: topic, key: record.key, value: record.value, headers: headers,
        timestamp: origin.timestampMilliseconds ?? record.timestampMilliseconds))
  }

  /// What the decoder makes of the record today; nil for a task or a null value, which hold no event.
  package func decoded() -> Result<Event, InvalidEvent>? {
    guard let value = record.value else { return nil }
    var decoder = EventDecoder()
    decoder.begin()
    for header in origin.originalHeaders(record.headers) {
      let name = Array(header.name.utf8)
      if let value = header.value {
        decoder.header(name: name.span, value: value.span)
      } else {
        decoder.header(name: name.span, value: nil)
      }
    }
    do throws(InvalidEvent) {
      return .success(try decoder.decode(value: value.span))
    } catch {
      return .failure(error)
    }
  }
}

/// Which letters are meant. An empty filter takes all.
package struct LetterFilter: Sendable {
  package var reasons: Set<String> = []
  /// The topics that the records came from.
  package var topics: Set<String> = []
  /// When the record became a dead letter, in milliseconds since 1970: from then on, and before then.
  package var from: Int64?
  package var before: Int64?

  package init() {}

  package var isEmpty: Bool { reasons.isEmpty && topics.isEmpty && from == nil && before == nil }

  package func takes(_ letter: StoredLetter) -> Bool {
    if !reasons.isEmpty && !reasons.contains(letter.reason) { return false }
    if !topics.isEmpty && !topics.contains(letter.origin.topic ?? "") { return false }
    if from == nil && before == nil { return true }
    guard let time = letter.record.timestampMilliseconds else { return false }
    return time >= (from ?? .min) && time < (before ?? .max)
  }
}

/// The letters that a command is about.
package enum LetterSelection: Sendable {
  /// These, whether they have been dealt with or not.
  case ids(Set<LetterID>)
  /// Those of the open ones that the filter takes.
  case open(LetterFilter)
}
