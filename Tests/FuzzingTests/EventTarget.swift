import FanoutStore
import FanoutWorker
import Kafka
import SocialEvents

/// Whatever is accepted can be written and read back, says one thing, and says it only once.
enum EventTarget {
  static func check(_ input: [UInt8]) throws {
    let record = WrittenRecord(input)
    try check(record)
    guard record.headers.isEmpty else { return }
    // A value alone may be the data object of an event of any type.
    for type in EventType.allCases {
      try check(
        WrittenRecord(
          headers: [
            ("ce_specversion", "1.0"), ("ce_id", "e1"), ("ce_source", "/fuzz"), ("ce_type", type.rawValue),
            ("ce_time", "2012-07-04T00:00:00Z"),
          ],
          value: record.value, time: record.time))
    }
  }

  private static func check(_ record: WrittenRecord) throws {
    let event: Event
    do throws(InvalidEvent) {
      event = try record.decoded()
    } catch {
      // It goes into a header of the dead letter, and on one line of a log.
      try promise(error.detail.utf8.count <= 1024, "a reason of \(error.detail.utf8.count) bytes")
      return
    }
    try checkCodec(event)
    try checkFacts(event, recorded: record.time.map(Timestamp.init(milliseconds:)))
  }

  private static func checkCodec(_ event: Event) throws {
    let encoder = EventEncoder()
    var data: [UInt8] = []
    try encoder.appendData(of: event, to: &data)
    let binary = try WrittenRecord(headers: encoder.headers(of: event), value: data).decoded()
    try promise(binary == event && extra(binary) == extra(event), "binary mode makes \(binary) of \(event)")

    var line: [UInt8] = []
    do throws(InvalidEvent) {
      try encoder.appendStructured(event, to: &line)
    } catch {
      // What fills a record in binary mode has no room for its attributes here.
      try promise(error.reason == .tooLarge, "can't be written as one line: \(error)")
      return
    }
    try promise(!line.contains(UInt8(ascii: "\n")), "two lines of one event")
    let structured = try EventDecoder.decodeStructured(line.span).event
    var again: [UInt8] = []
    try encoder.appendStructured(structured, to: &again)
    try promise(again == line, "structured mode makes \(structured) of \(event)")
  }

  private static func checkFacts(_ event: Event, recorded: Timestamp?) throws {
    var batch = FactBatch()
    batch.append(event, recorded: recorded)
    batch.append(event, recorded: recorded)
    batch.reduce()
    try promise(batch.edges.count + batch.posts.count + batch.seen.count == 1, "not one fact, but \(batch)")
    let store = MemoryStore()
    try promise(store.commitFacts(batch) == 1, "no news the first time")
    try promise(store.commitFacts(batch) == 0, "news the second time")
    try CanonicalDump(of: store).forEachLine { line in
      try promise(!line.contains(UInt8(ascii: "\n")), "two lines of one entry")
    }
    guard let post = batch.posts.first?.post, let slice = FanoutSlice(post: post, index: 5, count: 8) else { return }
    let key = SliceTask.producerRecord(slice, topic: "t", traceparent: nil).key ?? []
    try promise(try SliceTask.slice(key: key.span) == slice, "a task is not read back: \(slice)")
  }

  private static func extra(_ event: Event) -> [UInt8]? {
    guard case .present(_, _, let extra?) = event.assertion else { return nil }
    return Array(extra.utf8)
  }
}
