internal import FanoutStore
internal import Kafka
internal import SocialEvents

/// Records taken from Kafka together, as what has to be done about them.
struct Batch: Sendable {
  /// What the valid events assert.
  var facts = FactBatch()
  /// Slices of large fan-outs that came as tasks.
  var slices: [FanoutSlice] = []
  /// The records that can't be applied.
  var deadLetters: [DeadLetter] = []
  /// The trace contexts of the post events that bring one, for the tasks that they may cause.
  var traces: [StoreKey: String] = [:]
  /// For each partition, the offset of its first record here.
  var firstOffsets: [TopicPartition: Int64] = [:]
  /// For each partition, the offset after its last record here.
  var nextOffsets: [TopicPartition: Int64] = [:]

  var recordCount = 0
  var byteCount = 0
  var tombstoneCount = 0
  /// The assignment that the records were fetched under.
  var epoch = 0
  /// When its first record came.
  var startedAt = Instant.now

  var isEmpty: Bool { recordCount == 0 }

  init() {}

  /// All that is to be done about these records.
  init(merging singles: some Sequence<SingleRecord>) {
    for single in singles.lazy.map(\.batch) {
      facts.append(contentsOf: single.facts)
      slices += single.slices
      deadLetters += single.deadLetters
      traces.merge(single.traces) { $1 }
      recordCount += single.recordCount
      byteCount += single.byteCount
      tombstoneCount += single.tombstoneCount
    }
    facts.reduce()
  }
}

/// What has been done so far, in records and rows. Only grows.
public struct WorkerCounts: Sendable, CustomStringConvertible {
  /// Records taken from Kafka and acknowledged.
  public var records = 0
  /// Of these, valid events.
  public var events = 0
  /// Registers that changed: facts that were news.
  public var changes = 0
  /// Null values, skipped.
  public var tombstones = 0
  public var deadLetters = 0
  /// Feed rows that were new.
  public var deliveries = 0
  /// Slices done, and slices handed over as tasks.
  public var slices = 0
  public var slicesHandedOver = 0
  /// Tries that failed and were repeated.
  public var retries = 0
  public var rebalances = 0

  public init() {}

  public var description: String {
    "records=\(records) events=\(events) changes=\(changes) deliveries=\(deliveries) slices=\(slices) "
      + "slices_handed_over=\(slicesHandedOver) dead_letters=\(deadLetters) tombstones=\(tombstones) "
      + "retries=\(retries) rebalances=\(rebalances)"
  }

  mutating func add(_ other: WorkerCounts) {
    records += other.records
    events += other.events
    changes += other.changes
    tombstones += other.tombstones
    deadLetters += other.deadLetters
    deliveries += other.deliveries
    slices += other.slices
    slicesHandedOver += other.slicesHandedOver
    retries += other.retries
    rebalances += other.rebalances
  }
}
