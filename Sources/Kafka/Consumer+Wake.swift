internal import CRdKafka

extension Consumer {
  /// When the library may be sleeping over an empty queue, and when it was last woken.
  struct Fetching {
    /// Until when an empty queue may be due to a fetcher that sleeps.
    var suspectUntil = ContinuousClock.Instant.now
    var wokenAt = ContinuousClock.Instant.now
  }

  /// A poll that took all it wanted: the queue is, or was, well filled.
  func noteFullPoll() {
    if Self.sleepsOverFullQueue { fetching.suspectUntil = .now + .milliseconds(1500) }
  }

  /// Wakes the fetchers of partitions that have more, if the queue has run empty soon after it was full.
  ///
  /// Before 2.2 librdkafka stops fetching while its queue is over the limit, and looks again only when something wakes the
  /// broker's thread, up to a second later. Measured on 2.0.2: a fast consumer got a queue's worth of records a second.
  /// Any request to the broker wakes that thread; this is the smallest. Newer versions have `fetch.queue.backoff.ms`.
  func wakeFetchers() {
    let now = ContinuousClock.Instant.now
    guard Self.sleepsOverFullQueue, now < fetching.suspectUntil, now >= fetching.wokenAt + .milliseconds(20) else {
      return
    }
    fetching.wokenAt = now
    var waiting: [TopicPartition] = []
    for (index, partitions) in progress.enumerated() {
      for (number, progress) in partitions.enumerated() where progress.next >= 0 && progress.end < 0 {
        waiting.append(TopicPartition(topic: topicNames[index], partition: Int32(number)))
      }
    }
    if waiting.isEmpty { return }
    let list = PartitionList(waiting) { _ in Int64(RD_KAFKA_OFFSET_END) }
    _ = unsafe list.withPointer { unsafe rd_kafka_offsets_for_times(client.pointer, $0, 100) }
  }

  static var sleepsOverFullQueue: Bool { rd_kafka_version() < 0x0202_0000 }
}
