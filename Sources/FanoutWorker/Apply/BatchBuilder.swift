internal import FanoutStore
internal import Kafka
internal import SocialEvents

/// Turns records into a batch: record → event → facts. The first part of the way that data walk.
struct BatchBuilder {
  private let topics: Topics
  private let group: String
  private var decoder = EventDecoder()
  private(set) var batch = Batch()
  /// What the largest record of late takes in memory. The first guess is a large one.
  private var largest = 65_536

  /// What a decoded event takes besides what its value holds: strings, keys, places in arrays.
  private static let bytesPerRecord = 400

  init(topics: Topics, group: String) {
    self.topics = topics
    self.group = group
  }

  /// Adds a record. It is decoded in place; only one that can't be applied is copied, for the dead letters.
  mutating func add(_ record: borrowing ConsumedRecord, of partition: TopicPartition) {
    if batch.isEmpty { batch.startedAt = .now }
    batch.recordCount += 1
    if batch.nextOffsets.updateValue(record.offset + 1, forKey: partition) == nil {
      batch.firstOffsets[partition] = record.offset
    }
    let bytesBefore = batch.byteCount
    batch.byteCount += Self.bytesPerRecord
    defer { largest = max(batch.byteCount - bytesBefore, largest - largest / 64) }
    do throws(InvalidEvent) {
      if partition.topic == topics.tasks {
        try addTask(record)
      } else {
        try addEvent(record)
      }
    } catch {
      let letter = DeadLetter(record: record.owned(), reason: error, group: group)
      batch.byteCount += letter.byteCount
      batch.deadLetters.append(letter)
    }
  }

  /// How many more records fit, if they are as large as the largest of late.
  func room(records: Int, bytes: Int) -> Int {
    let (records, bytes) = (records - batch.recordCount, bytes - batch.byteCount)
    return records <= 0 || bytes <= 0 ? 0 : max(1, min(records, bytes / max(1, largest)))
  }

  /// Hands out what has been gathered, and starts over.
  mutating func take(epoch: Int) -> Batch {
    var taken = batch
    taken.epoch = epoch
    // Here, as the apply thread has more to do than this one.
    taken.facts.reduce()
    batch = Batch()
    return taken
  }

  private mutating func addEvent(_ record: borrowing ConsumedRecord) throws(InvalidEvent) {
    if record.isTombstone {
      batch.tombstoneCount += 1
      return
    }
    batch.byteCount += record.valueCount
    decoder.begin()
    record.forEachHeader { name, value in decoder.header(name: name, value: value) }
    let event = try record.withValue { value throws(InvalidEvent) in
      guard let value else { throw InvalidEvent(.notJSON, "the value is null") }
      return try decoder.decode(value: value)
    }
    let recorded = record.timestampMilliseconds.map(Timestamp.init(milliseconds:))
    batch.facts.append(event, recorded: recorded)
    guard let trace = event.traceparent else { return }
    switch event.assertion {
    case .published(let post, _), .deleted(let post): batch.traces[StoreKey(post)] = trace
    case .present, .absent, .seen: break
    }
  }

  private mutating func addTask(_ record: borrowing ConsumedRecord) throws(InvalidEvent) {
    if record.isTombstone {
      batch.tombstoneCount += 1
      return
    }
    batch.byteCount += record.keyCount + record.valueCount
    batch.slices.append(
      try record.withKey { key throws(InvalidEvent) in
        guard let key else { throw InvalidEvent(.invalidTask, "a task has no key") }
        return try SliceTask.slice(key: key)
      })
  }
}
