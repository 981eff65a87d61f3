public import FanoutStore
internal import Kafka
internal import Synchronization

/// Re-applies topics to a store (SPEC 8, `replay`): reads what was there when it began, and ends.
///
/// It reads under a consumer group of its own and never moves a live group's offsets. It does the slices of large fan-outs
/// itself instead of writing tasks, since the workers that read those may serve another store. Records that can't be applied
/// are counted and logged, not sent to the dead letters again.
public final class Replay: Sendable {
  /// From where topics are read.
  public enum Start: Sendable {
    case beginning
    /// From the first record whose timestamp is at least this, in milliseconds since 1970.
    case time(milliseconds: Int64)
  }

  /// How far a replay is.
  public struct Progress: Sendable {
    /// Offsets passed and offsets to pass, over all partitions.
    public let done: Int64
    public let total: Int64
    public let seconds: Double
    public let counts: WorkerCounts

    /// Offsets a second since the start.
    public var rate: Double { seconds > 0 ? Double(done) / seconds : 0 }
    /// Seconds until the end at this rate, nil while there is none.
    public var remainingSeconds: Double? { rate > 0 ? Double(total - done) / rate : nil }
  }

  private let configuration: WorkerConfiguration
  private let names: [String]
  private let start: Start
  private let store: any Store
  private let log: Log
  private let shared = SharedProgress()

  /// - Parameters:
  ///   - configuration: its `group` is the replay's own.
  ///   - topicNames: the topics to replay, normally `configuration.topics.events`.
  public init(
    _ configuration: WorkerConfiguration, topicNames: [String], from start: Start, store: any Store, log: Log
  ) {
    self.configuration = configuration
    names = topicNames
    self.start = start
    self.store = store
    self.log = log
  }

  /// Asks the replay to end after the batch at hand. Any thread.
  public func stop() {
    shared.requestStop(gracePeriod: configuration.gracePeriod)
  }

  /// Works on the calling thread until all is read.
  /// - Parameter report: called about once a second, and at the end.
  /// - Returns: the last progress; `done` is less than `total` only if it was stopped.
  /// - Throws: `WorkerError`, `KafkaError`: what was applied stays, and a replay may simply be begun again.
  public func run(report: (Progress) -> Void) throws -> Progress {
    let lanes = try Lanes(
      configuration, store: store, handover: SlicesHere(store: store, sliceSize: configuration.sliceSize),
      deadLetters: nil, policy: FailurePolicy(isPatient: false), log: log)
    defer { lanes.close(until: .after(milliseconds: 1000)) }
    let consumer = try Consumer(configuration.kafka, group: configuration.group)
    defer { _ = consumer.close(timeoutMilliseconds: 5000) }

    let ranges = try ranges(consumer)
    let total = ranges.values.reduce(Int64(0)) { $0 + Int64($1.count) }
    var positions = ranges.mapValues(\.lowerBound)
    var open = Set(ranges.filter { !$0.value.isEmpty }.keys)
    try consumer.assign(open.map { ($0, .offset(ranges[$0]?.lowerBound ?? 0)) })
    var watchdog = Watchdog(timeout: configuration.stallTimeout, starts: positions, log: log)
    let began = Instant.now
    var nextReport = began.advanced(milliseconds: 1000)

    func progress() -> Progress {
      let done = positions.reduce(Int64(0)) { sum, entry in
        guard let range = ranges[entry.key] else { return sum }
        return sum + min(entry.value, range.upperBound) - range.lowerBound
      }
      return Progress(done: done, total: total, seconds: Instant.now.seconds(since: began), counts: shared.counts)
    }

    while !shared.isStopRequested {
      for outcome in lanes.takeOutcomes() {
        let counts: WorkerCounts
        switch outcome.result {
        case .success(let result): counts = result
        case .failure(let failure): throw WorkerError(failure.description)
        }
        shared.add(counts)
        for (partition, next) in outcome.nextOffsets {
          positions[partition] = next
          _ = try consumer.storeOffset(partition, next: next)
        }
      }
      if Instant.now >= nextReport {
        report(progress())
        nextReport = .after(milliseconds: 1000)
      }
      // Nothing else is wanted of a replay than that it be done soon, so batches are as large as they may be.
      lanes.submitIfReady(age: nil, epoch: 0)
      if open.isEmpty {
        lanes.submitRest(epoch: 0)
        if lanes.isQuiet {
          // Also what brings no record at the end, as the markers of transactions.
          positions = ranges.mapValues(\.upperBound)
          break
        }
      }
      let isFetching = !open.isEmpty && !lanes.isStuck
      if let reason = watchdog.look(at: consumer, isFetching: isFetching) {
        throw WorkerError("\(reason). What was replayed stays; run it again")
      }
      if !isFetching {
        lanes.waitForOutcome(until: .after(milliseconds: 200))
        continue
      }
      try consumer.poll(
        max: 1000, timeoutMilliseconds: 50, lingerMilliseconds: 5,
        mayTake: { lanes.room },
        { record in
          let partition = record.topicPartition
          guard let range = ranges[partition] else { return }
          // What came after the start is not part of the replay.
          if record.offset < range.upperBound { lanes.add(record, of: partition) }
          if record.offset + 1 >= range.upperBound { open.remove(partition) }
        })
      for partition in open {
        if let reached = consumer.endOffset(partition), let range = ranges[partition], reached >= range.upperBound {
          open.remove(partition)
        }
      }
    }
    let last = progress()
    report(last)
    return last
  }

  /// What is to be read of each partition.
  private func ranges(_ consumer: Consumer) throws -> [TopicPartition: Range<Int64>] {
    let partitions = try consumer.partitions(of: names)
    var starts: [TopicPartition: Int64]?
    if case .time(let milliseconds) = start {
      starts = try consumer.offsets(forTime: milliseconds, partitions, timeoutMilliseconds: 10_000)
    }
    var ranges: [TopicPartition: Range<Int64>] = [:]
    for (partition, (low, high)) in try consumer.watermarks(partitions) {
      // A partition without an offset for the time holds nothing that late.
      let wanted = starts.map { $0[partition] ?? high } ?? low
      let first = max(low, min(high, wanted))
      ranges[partition] = first..<max(first, high)
    }
    return ranges
  }
}

/// Does slices at once, in this process.
private struct SlicesHere: SliceHandover {
  let store: any Store
  let sliceSize: Int

  func handOver(_ slices: [FanoutSlice], trace: (FanoutSlice) -> String?) throws -> Int {
    var deliveries = 0
    for slice in slices { deliveries += try store.derive(slice, sliceSize: sliceSize) }
    return deliveries
  }
}
