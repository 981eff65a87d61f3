package import Kafka

/// Notices partitions that hold records which the Kafka client does not deliver: librdkafka can fall silent on a partition, after
/// a change of its leader for one. Knows only what it is shown, and when.
package struct StallWatch {
  /// Where a partition stands: the next record wanted, and where the next one to be written will be.
  package struct Position: Equatable {
    let next: Int64
    let end: Int64

    package init(next: Int64, end: Int64) {
      self.next = next
      self.end = end
    }
  }

  package enum Remedy: Equatable {
    case none
    /// Fetching is begun anew, from these offsets.
    case seek([TopicPartition: Int64])
    /// That did not help these partitions: the client has to be replaced.
    case replaceClient([TopicPartition])
  }

  private struct Silence {
    let next: Int64
    var since: Instant
    var wasSought = false
  }

  private let patience: Int
  private var silences: [TopicPartition: Silence] = [:]

  /// - Parameter patience: how long, in milliseconds, nothing may come of a partition that has something, until it is sought, and
  ///   then until the client is replaced.
  package init(patience: Int) { self.patience = patience }

  /// - Parameter positions: of the partitions that should be fetched from at the moment.
  package mutating func look(at positions: [TopicPartition: Position], now: Instant) -> Remedy {
    var stalled: [TopicPartition: Int64] = [:]
    var isHopeless: [TopicPartition] = []
    var next: [TopicPartition: Silence] = [:]
    for (partition, position) in positions where position.next < position.end {
      guard var silence = silences[partition], silence.next == position.next else {
        next[partition] = Silence(next: position.next, since: now)
        continue
      }
      if now >= silence.since.advanced(milliseconds: patience) {
        if silence.wasSought { isHopeless.append(partition) }
        stalled[partition] = silence.next
        silence.since = now
        silence.wasSought = true
      }
      next[partition] = silence
    }
    silences = next
    if !isHopeless.isEmpty { return .replaceClient(isHopeless) }
    return stalled.isEmpty ? .none : .seek(stalled)
  }

  /// The position of a partition that was silent at the last look.
  package func position(of partition: TopicPartition) -> Int64? { silences[partition]?.next }

  /// Begins anew with some partitions or, as when the brokers were away, with all.
  package mutating func forget(_ partitions: Set<TopicPartition>?) {
    if silences.isEmpty { return }
    if let partitions {
      for partition in partitions { silences[partition] = nil }
    } else {
      silences = [:]
    }
  }
}
