import FanoutWorker
import Kafka
import SocialEvents
import fanout

/// Whatever lies in the dead letters can be listed, shown safely, and sent back as it was.
enum LetterTarget {
  static func check(_ input: [UInt8]) throws {
    let written = WrittenRecord(input)
    let topics = Topics()
    let letter = StoredLetter(written.letter)
    try checkWay(letter, topics)
    try checkText(written.value)

    let json = LetterJSON.whole(letter, .open, topics).closed
    try promise(json.unicodeScalars.allSatisfy(isVisible), "a terminal could obey \(json)")
    // The decoder takes any JSON as a member that it doesn't know.
    let event =
      #"{"specversion":"1.0","id":"e","source":"s","type":"feedback-seen","time":"2012-07-04T00:00:00Z","data":"#
      + #"{"user":"u","upTo":"2012-07-04T00:00:00Z","letter":"# + json + "}}"
    do throws(InvalidEvent) {
      _ = try EventDecoder.decodeStructured(event.utf8.span)
    } catch {
      try promise(error.reason == .tooLarge, "no JSON (\(error)): \(json)")
    }
  }

  private static func checkWay(_ letter: StoredLetter, _ topics: Topics) throws {
    try promise(LetterID(letter.id.description) == letter.id, "the id is not read back")
    let limit = 3
    guard case .back(let record) = letter.wayBack(to: topics, maxRedrives: limit) else { return }
    try promise((topics.events + [topics.tasks]).contains(record.topic), "sent to \(record.topic)")
    try promise(record.key == letter.record.key && record.value == letter.record.value, "not sent back as it was")
    let again = StoredLetter(
      OwnedRecord(
        partition: letter.record.partition, offset: 18, timestampMilliseconds: record.timestamp, key: record.key,
        value: record.value, headers: record.headers))
    try promise(again.redriveCount == letter.redriveCount + 1, "counted to \(again.redriveCount)")
    try promise(again.redriveCount <= limit, "redriven beyond the limit")
    guard case .success(let before)? = letter.decoded() else { return }
    guard case .success(let after)? = again.decoded(), after == before else {
      throw Violation("what was sent back is another event than \(before)")
    }
  }

  private static func checkText(_ bytes: [UInt8]) throws {
    let dump = SafeText.hexDump(bytes)
    try promise(dump.count == (bytes.count + 15) / 16, "\(dump.count) lines of a hex dump of \(bytes.count) bytes")
    guard let text = SafeText.string(bytes) else { return }
    try promise(SafeText.line(text).unicodeScalars.allSatisfy(isVisible), "a terminal could obey the line")
    let json = SafeText.json(text)
    try promise(json.unicodeScalars.allSatisfy(isVisible), "a terminal could obey the JSON")
    if text.isEmpty { return }
    let event =
      #"{"specversion":"1.0","id":"e","source":"# + json
      + #","type":"follow","time":"2012-07-04T00:00:00Z","data":{"actor":"a","target":"b"}}"#
    let source: String
    do throws(InvalidEvent) {
      source = try EventDecoder.decodeStructured(event.utf8.span).event.source
    } catch {
      try promise(error.reason == .tooLarge, "no JSON (\(error)): \(json)")
      return
    }
    try promise(source.utf8.elementsEqual(text.utf8), "the JSON says \(source)")
  }

  private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
    default: true
    }
  }
}
