import FanoutStore
import FanoutWorker
import Kafka
import SocialEvents
import fanout

/// Whatever is taken for a key, a note, a cursor or a time is written again in such a way that it is read as the same.
enum KeyTarget {
  static func check(_ input: [UInt8]) throws {
    try checkTask(input)
    let text = String(decoding: input, as: UTF8.self)
    for next in [0, 17, Int64.max - 3] { try checkNote(text, next) }
    try checkCursors(text)
    if let time = try? Timestamp(rfc3339: text) {
      try promise(try Timestamp(rfc3339: time.description) == time, "\(time) is read as another time")
    }
    if let id = LetterID(text) { try promise(LetterID(id.description) == id, "\(id) is read as another id") }
  }

  private static func checkTask(_ input: [UInt8]) throws {
    guard let slice = try? SliceTask.slice(key: input.span) else { return }
    try promise(slice.keys.lowerBound <= slice.keys.upperBound, "no range: \(slice)")
    let key = SliceTask.producerRecord(slice, topic: "t", traceparent: nil).key ?? []
    try promise(try SliceTask.slice(key: key.span) == slice, "\(slice) is read as another slice")
  }

  private static func checkNote(_ note: String, _ next: Int64) throws {
    let states = LetterStates(CommittedOffset(next: next, note: note))
    try promise(next == 0 || states[next - 1] != .open, "what is before the offset is open")
    let (commit, losses) = states.commit(from: 0)
    try promise(commit.note.utf8.count <= 4096, "a note of \(commit.note.utf8.count) bytes")
    try promise(commit.next >= next, "committed less than before")
    if losses == LetterStates.Losses() {
      try promise(LetterStates(commit) == states, "\(commit) is read as something else")
    }
  }

  private static func checkCursors(_ text: String) throws {
    if let item = try? Cursor.feedItem(text) {
      try promise(try Cursor.feedItem(Cursor.text(item)) == item, "\(item) is read as another item")
    }
    if let position = try? Cursor.feedback(text) {
      try promise(position.id.utf8.elementsEqual(text.utf8), "\(text) is another spelling of \(position.id)")
    }
    for relation in Relation.allCases {
      guard let subject = try? Cursor.subject(text, relation) else { continue }
      try promise(try Cursor.subject(Cursor.text(subject), relation) == subject, "\(subject) is read as another")
    }
  }
}
