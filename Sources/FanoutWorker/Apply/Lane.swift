internal import Kafka

/// A way from the consumer's thread to the store: a batch that is being gathered, one that waits, and one that a thread of the
/// lane's own applies.
final class Lane {
  private var builder: BatchBuilder
  private let thread: ApplyThread
  private let maxRecords: Int
  private let maxBytes: Int

  init(_ builder: BatchBuilder, _ thread: ApplyThread, maxRecords: Int, maxBytes: Int) {
    self.builder = builder
    self.thread = thread
    self.maxRecords = maxRecords
    self.maxBytes = maxBytes
  }

  func add(_ record: borrowing ConsumedRecord, of partition: TopicPartition) { builder.add(record, of: partition) }

  /// How many more records the batch at hand has room for.
  var room: Int { builder.room(records: maxRecords, bytes: maxBytes) }
  private var isFull: Bool { builder.batch.recordCount >= maxRecords || builder.batch.byteCount >= maxBytes }
  /// Whether no record can be taken before another batch is done.
  var isStuck: Bool { isFull && !thread.hasRoom }
  /// Whether nothing is at hand.
  var isQuiet: Bool { builder.batch.isEmpty && thread.isIdle }

  /// Hands the batch over if it is full, or if the lane has nothing else to do and the batch has waited for `age` milliseconds.
  /// - Parameter age: nil: only when it is full.
  func submitIfReady(age: Int?, epoch: Int) {
    if builder.batch.isEmpty { return }
    // While the store is busy a batch may as well grow; a full one waits at the door.
    let isReady = isFull ? thread.hasRoom : age.map { isOld($0) && thread.isIdle } ?? false
    if isReady { thread.submit(builder.take(epoch: epoch)) }
  }

  private func isOld(_ age: Int) -> Bool { Instant.now >= builder.batch.startedAt.advanced(milliseconds: age) }

  /// Hands the batch over as soon as there is room.
  func submitRest(epoch: Int) {
    if !builder.batch.isEmpty, thread.hasRoom { thread.submit(builder.take(epoch: epoch)) }
  }

  /// Whether all that was handed over is done by the deadline, and nothing is left to hand over.
  func waitUntilQuiet(until deadline: Instant) -> Bool {
    thread.waitUntilIdle(until: deadline) && builder.batch.isEmpty
  }

  /// Forgets what has been gathered.
  func forget() { _ = builder.take(epoch: 0) }
  /// Takes back the batch that has not been begun.
  func discardWaiting() { thread.discardWaiting() }
  func close(until deadline: Instant) { thread.close(until: deadline) }
}
