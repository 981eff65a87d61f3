public import Kafka
public import SocialEvents

/// How a worker or a replay works.
public struct WorkerConfiguration: Sendable {
  public var kafka: ClientConfiguration
  public var topics: Topics
  /// The consumer group. All workers of one store share it.
  public var group: String
  /// A fan-out along more follow edges than this is cut into slices (SPEC 6).
  public var sliceSize = 5000
  /// The most records that are taken from Kafka and not yet acknowledged (SPEC 7, "memory").
  public var maxInFlight = 60_000
  /// The most memory that batches in flight may take, in bytes.
  public var maxBytesInFlight = 24 << 20
  /// How many batches are written to the store at once, each over a connection of its own. Events of a partition stay in order.
  public var writers = 1
  /// How long a batch may wait for more records, in milliseconds.
  public var batchAge = 5
  /// How long, in milliseconds, nothing may come of a partition that holds more, until fetching it is begun anew, and then again
  /// until the Kafka client is replaced.
  public var stallTimeout = 30_000
  /// How long a stop may take, in milliseconds, before the batch at hand is given up (SPEC 7, "SIGTERM").
  public var gracePeriod = 25_000
  /// Ends when all that was in the topics at the start has been applied (SPEC 8, `--until-caught-up`).
  public var untilCaughtUp = false

  /// Called when a worker becomes ready, and when it is not ready any more (SPEC 7): it is while it is a member of its group and
  /// no step waits for the store or the brokers. On the worker's thread; must not block.
  public var readinessChanged: (@Sendable (_ isReady: Bool) -> Void)?

  public init(kafka: ClientConfiguration, topics: Topics = Topics(), group: String = "fanout") {
    self.kafka = kafka
    self.topics = topics
    self.group = group
  }

  /// A writer needs three records in flight at least.
  var usedWriters: Int { max(1, min(writers, maxInFlight / 3)) }
  /// Three batches for each writer are in flight at most: one is applied, one waits, one is gathered.
  private var maxBatches: Int { 3 * usedWriters }
  var maxBatchRecords: Int { max(1, maxInFlight / maxBatches) }
  var maxBatchBytes: Int { max(1, maxBytesInFlight / maxBatches) }
}
