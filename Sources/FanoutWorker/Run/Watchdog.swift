internal import Kafka

/// Sees to it that a consumer never falls silent for good: librdkafka's own watch is satisfied as long as it is polled.
struct Watchdog {
  private let timeout: Int
  private let log: Log
  private let starts: [TopicPartition: Int64]?
  private var watch: StallWatch
  private var nextLook = Instant.now

  /// - Parameters:
  ///   - timeout: how long a partition may be silent, in milliseconds.
  ///   - starts: from where partitions are read; without it, from what the group has committed.
  init(timeout: Int, starts: [TopicPartition: Int64]? = nil, log: Log) {
    self.timeout = timeout
    self.starts = starts
    self.log = log
    watch = StallWatch(patience: timeout)
  }

  /// Called all the time; it looks now and then.
  /// - Parameter isFetching: whether records should come, of all partitions that are not paused.
  /// - Returns: why the client has to be replaced, nil if it has not.
  mutating func look(at consumer: Consumer, isFetching: Bool) -> String? {
    // Time that passed without fetching, between two looks as well, is no silence.
    watch.forget(isFetching ? consumer.pausedPartitions : nil)
    guard Instant.now >= nextLook else { return nil }
    nextLook = .after(milliseconds: max(100, timeout / 3))
    guard isFetching else { return nil }
    guard let positions = positions(of: consumer) else {
      watch.forget(nil)
      return nil
    }
    switch watch.look(at: positions, now: .now) {
    case .none: return nil
    case .replaceClient(let partitions): return "no record comes of \(names(partitions)), where there are some"
    case .seek(let offsets):
      log.warning("no record comes of \(names(offsets.keys)), where there are some; fetching them begins anew")
      for (partition, next) in offsets {
        do {
          try consumer.seek(partition, to: .offset(next), timeoutMilliseconds: 1000)
        } catch {
          log.warning("\(error)")
        }
      }
      return nil
    }
  }

  /// Where the partitions stand that should be fetched from; nil if the brokers don't say.
  private func positions(of consumer: Consumer) -> [TopicPartition: StallWatch.Position]? {
    let partitions = Array(Set(consumer.assignment).subtracting(consumer.pausedPartitions))
    do {
      let marks = try consumer.watermarks(partitions, timeoutMilliseconds: 1000)
      let unread = partitions.filter { consumer.position($0) == nil && watch.position(of: $0) == nil }
      let starts = try self.starts ?? consumer.committed(unread, timeoutMilliseconds: 1000)
      var positions: [TopicPartition: StallWatch.Position] = [:]
      for (partition, marks) in marks {
        let next = consumer.position(partition) ?? watch.position(of: partition) ?? starts[partition] ?? 0
        positions[partition] = StallWatch.Position(next: max(next, marks.low), end: marks.high)
      }
      return positions
    } catch {
      return nil
    }
  }

  private func names(_ partitions: some Sequence<TopicPartition>) -> String {
    partitions.map(\.description).sorted().joined(separator: ", ")
  }
}
