internal import Kafka
internal import SocialEvents

/// Reads the records of a batch again, each as a batch of its own.
///
/// Batches are decoded in place and keep no records. In the rare case that the store refuses a value among them, Kafka still
/// has them all.
struct SingleRecords: Sendable {
  private let kafka: ClientConfiguration
  private let topics: Topics
  private let group: String

  init(_ configuration: WorkerConfiguration) {
    kafka = configuration.kafka
    topics = configuration.topics
    group = configuration.group
  }

  /// - Parameter body: is given each record, and what has to be done about it.
  /// - Throws: `BatchApplier.Failure.givenUp` when nobody waits for it any more, and what `body` throws.
  func read(
    _ batch: Batch, isGivenUp: () -> Bool, _ body: (Batch, OwnedRecord) throws -> Void
  ) throws {
    // Not a member of the group: it only reads, and commits nothing.
    let consumer = try Consumer(kafka, group: group, commitsStoredOffsets: false)
    defer { consumer.close(timeoutMilliseconds: 2000) }
    var open = batch.nextOffsets
    try consumer.assign(batch.firstOffsets.map { ($0.key, .offset($0.value)) })
    var builder = BatchBuilder(topics: topics, group: group)
    while !open.isEmpty {
      var found: [(Batch, OwnedRecord)] = []
      try consumer.poll(max: 100, timeoutMilliseconds: 200) { record in
        let partition = record.topicPartition
        guard let end = open[partition], record.offset < end else { return }
        builder.add(record, of: partition)
        found.append((builder.take(epoch: batch.epoch), record.owned()))
      }
      for (single, record) in found { try body(single, record) }
      // Records that are gone by now leave a gap, behind which reading goes on.
      for (partition, end) in open where (consumer.position(partition) ?? 0) >= end { open[partition] = nil }
      if isGivenUp() { throw BatchApplier.Failure.givenUp }
    }
  }

  func deadLetter(_ record: OwnedRecord, _ message: String) -> DeadLetter {
    DeadLetter(record: record, reason: InvalidEvent(.refused, message), group: group)
  }
}
