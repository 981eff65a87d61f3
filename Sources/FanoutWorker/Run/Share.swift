internal import Kafka

/// What the group has given this worker: its partitions, and how far they are done. Events and tasks are paused apart, as tasks
/// wait in Kafka while there are enough at hand, and events go on.
struct Share {
  /// Counts the shares. A batch of an earlier one must not store offsets.
  private(set) var epoch = 0
  /// Whether the group has given a share, which may be of none.
  private(set) var isGiven = false
  private(set) var areEventsPaused = false
  private var areTasksPaused = false
  /// For each partition, up to where its offset is stored.
  private var stored: [TopicPartition: Int64] = [:]
  private let tasks: String

  /// - Parameter tasks: the topic with tasks; the others have events.
  init(tasks: String) {
    self.tasks = tasks
  }

  mutating func begin() {
    epoch += 1
    isGiven = true
  }

  mutating func end() {
    epoch += 1
    isGiven = false
    areEventsPaused = false
    areTasksPaused = false
    stored = [:]
  }

  // MARK: Pausing

  mutating func pauseEvents(_ consumer: Consumer) throws(KafkaError) {
    try consumer.pause(consumer.assignment.filter { $0.topic != tasks })
    areEventsPaused = true
  }

  mutating func resumeEvents(_ consumer: Consumer) throws(KafkaError) {
    try consumer.resume(consumer.assignment.filter { $0.topic != tasks })
    areEventsPaused = false
  }

  mutating func pauseTasks(_ isPaused: Bool, _ consumer: Consumer) throws(KafkaError) {
    if isPaused == areTasksPaused { return }
    let partitions = consumer.assignment.filter { $0.topic == tasks }
    if isPaused { try consumer.pause(partitions) } else { try consumer.resume(partitions) }
    areTasksPaused = isPaused
  }

  // MARK: Acknowledging

  mutating func store(_ next: Int64, of partition: TopicPartition, _ consumer: Consumer, _ log: Log) {
    do {
      // False: the partition is not ours any more, and its new owner will do the records again.
      if try consumer.storeOffset(partition, next: next) { stored[partition] = next }
    } catch {
      log.warning("storing the offset of \(partition): \(error)")
    }
  }

  /// Stores the ends of partitions that are read to their end, beyond offsets that bring no record: transaction markers, and
  /// what compaction took away. Only so do lag and the others of the group see that all is done.
  mutating func storeEnds(_ consumer: Consumer, _ log: Log) {
    for partition in consumer.assignment {
      guard let end = consumer.endOffset(partition), end > stored[partition] ?? 0 else { continue }
      store(end, of: partition, consumer, log)
    }
  }
}
