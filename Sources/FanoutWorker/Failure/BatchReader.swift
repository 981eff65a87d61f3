internal import Kafka
internal import SocialEvents

/// A record, and what has to be done about it alone.
struct SingleRecord {
  let record: OwnedRecord
  let batch: Batch
}

/// Reads the records of a batch again, each as a batch of its own.
///
/// Batches are decoded in place and keep no records. In the rare case that the store refuses a value among them, Kafka still
/// has them all.
struct BatchReader: Sendable {
  private let kafka: ClientConfiguration
  private let topics: Topics
  private let group: String

  /// How many records are held at a time, and about how many bytes.
  private static let maxRecords = 1000
  private static let maxBytes = 8 << 20

  init(_ configuration: WorkerConfiguration) {
    kafka = configuration.kafka
    topics = configuration.topics
    group = configuration.group
  }

  /// - Parameters:
  ///   - positions: from where each partition is read; moved on when `body` has returned.
  ///   - ends: up to where.
  ///   - body: is given the records, some at a time.
  /// - Throws: `BatchApplier.Failure.givenUp` when nobody waits for it any more, and what `body` throws.
  func read(
    from positions: inout [TopicPartition: Int64], to ends: [TopicPartition: Int64], isGivenUp: () -> Bool,
    _ body: ([SingleRecord]) throws -> Void
  ) throws {
    // Not a member of the group: it only reads, and commits nothing.
    let consumer = try Consumer(kafka, group: group, commitsStoredOffsets: false)
    defer { consumer.close(timeoutMilliseconds: 2000) }
    var open = ends.filter { (positions[$0.key] ?? 0) < $0.value }
    try consumer.assign(open.keys.map { ($0, .offset(positions[$0] ?? 0)) })
    var builder = BatchBuilder(topics: topics, group: group)
    var found: [SingleRecord] = []
    var bytes = 0
    while !open.isEmpty {
      try consumer.poll(max: 100, timeoutMilliseconds: 200) { record in
        let partition = record.topicPartition
        guard let end = ends[partition], record.offset < end else { return }
        builder.add(record, of: partition)
        let single = SingleRecord(record: record.owned(), batch: builder.take(epoch: 0))
        bytes += single.batch.byteCount
        found.append(single)
      }
      // Records that are gone by now leave a gap, behind which reading goes on.
      for (partition, end) in open where (consumer.position(partition) ?? 0) >= end { open[partition] = nil }
      if found.count >= Self.maxRecords || bytes >= Self.maxBytes || open.isEmpty {
        try body(found)
        for single in found { positions[single.record.partition] = single.record.offset + 1 }
        found = []
        bytes = 0
      }
      if isGivenUp() { throw BatchApplier.Failure.givenUp }
    }
  }

  func deadLetter(_ record: OwnedRecord, _ message: String) -> DeadLetter {
    DeadLetter(record: record, reason: InvalidEvent(.refused, message), group: group)
  }
}
