internal import Kafka
internal import SocialEvents

/// Knows when all that was in the topics at the start has been applied, by this worker or another of the group; tasks included.
///
/// Tasks are written before the events that cause them are acknowledged. So once all events are, the tasks topic holds all
/// tasks, and its end is taken then.
struct CatchUp {
  private let topics: Topics
  private var ends: [TopicPartition: Int64]
  private var hasSeenTasks = false
  private var nextLook = Instant.now

  init(topics: Topics, consumer: Consumer) throws {
    self.topics = topics
    ends = try Self.ends(of: topics.events, consumer)
  }

  /// - Parameters:
  ///   - applied: up to where this worker has applied records.
  ///   - isQuiet: whether this worker has nothing at hand.
  mutating func isDone(_ consumer: Consumer, applied: [TopicPartition: Int64], isQuiet: Bool) throws -> Bool {
    guard Instant.now >= nextLook else { return false }
    while true {
      for (partition, end) in ends {
        // A partition may end with records that are never delivered (transaction markers), so its end counts as well, once
        // all that was read before it is applied.
        let reached = max(applied[partition] ?? 0, isQuiet ? consumer.endOffset(partition) ?? 0 : 0)
        if reached >= end { ends[partition] = nil }
      }
      if !ends.isEmpty {
        // The others may be another worker's.
        let committed = try Self.committed(Array(ends.keys), consumer)
        for (partition, end) in ends where (committed[partition] ?? 0) >= end { ends[partition] = nil }
      }
      if !ends.isEmpty {
        nextLook = .after(milliseconds: 200)
        return false
      }
      if hasSeenTasks { return true }
      hasSeenTasks = true
      ends = try Self.ends(of: [topics.tasks], consumer)
    }
  }

  /// While the group is being formed the brokers may not answer this: then nothing is known, which is no failure.
  private static func committed(
    _ partitions: [TopicPartition], _ consumer: Consumer
  ) throws(KafkaError) -> [TopicPartition: Int64] {
    do {
      return try consumer.committed(partitions, timeoutMilliseconds: 2000)
    } catch {
      if error.isRetriable || error.isTimeout { return [:] }
      throw error
    }
  }

  /// The end offsets of the partitions that hold anything.
  static func ends(of topics: [String], _ consumer: Consumer) throws -> [TopicPartition: Int64] {
    var ends: [TopicPartition: Int64] = [:]
    for (partition, marks) in try consumer.watermarks(consumer.partitions(of: topics)) where marks.high > marks.low {
      ends[partition] = marks.high
    }
    return ends
  }
}
