internal import CRdKafka
internal import Dispatch
internal import Synchronization

/// Reads records from Kafka: as a member of a group (``subscribe(_:handler:)``) or from given positions without
/// membership (``assign(_:)``).
///
/// One thread owns a consumer: it alone polls, pauses, seeks and is told of rebalances, because batch consumption
/// concurrent with any of these misplaces records (#4208). The type is not `Sendable`, so the compiler sees to that.
///
/// Offsets go two ways. On the processing path they are *stored* (``storeOffset(_:next:)``), and librdkafka commits what
/// is stored once a second. An explicit commit (``commitStored(timeoutMilliseconds:)``) belongs in
/// ``RebalanceHandler/revoked(_:by:)`` and at shutdown, nowhere else: during a cooperative rebalance it loses the
/// assignment (#4059).
@safe public final class Consumer {
  /// Where to begin in a partition.
  public enum Position: Sendable, Equatable {
    case beginning, end
    /// The offset of the next record wanted.
    case offset(Int64)
    /// What the group has committed, else `auto.offset.reset`.
    case committed

    var offset: Int64 {
      switch self {
      case .beginning: Int64(RD_KAFKA_OFFSET_BEGINNING)
      case .end: Int64(RD_KAFKA_OFFSET_END)
      case .offset(let offset): offset
      case .committed: Int64(RD_KAFKA_OFFSET_STORED)
      }
    }
  }

  /// The topics seen so far; a record names its topic by an index into this. Only ever appended to.
  public internal(set) var topicNames: [String] = []
  /// How many times partitions were assigned, revoked or lost. Records of one number belong to one assignment.
  public internal(set) var epoch = 0

  let client: ClientHandle
  let group: String
  let queue: OpaquePointer
  /// Where the batch call puts its messages.
  let slots: UnsafeMutableBufferPointer<UnsafeMutablePointer<rd_kafka_message_t>?>
  var handler: (any RebalanceHandler)?
  /// Resuming a partition that isn't paused delivers records again (#4637): what is paused is remembered here.
  var paused: Set<TopicPartition> = []
  /// By topic index and partition.
  var progress: [[Progress]] = []
  /// The topic objects met in the batch at hand, with their indices.
  var batchTopics: [(pointer: OpaquePointer, index: Int)] = unsafe []
  var fetching = Fetching()
  /// A failure met where it could not be thrown.
  var pendingError: KafkaError?
  var phase = Phase.open

  /// While closing, the handler still stores and commits.
  enum Phase { case open, closing, closed }

  struct Progress {
    /// The offset after the last record delivered, -1 when none was.
    var next: Int64 = -1
    /// The offset at which the end was reported, -1 when a record came since.
    var end: Int64 = -1
  }

  /// Creates the client; connecting happens in the background.
  ///
  /// - Parameters:
  ///   - group: the consumer group; needed for ``assign(_:)`` too, where it only names who commits.
  ///   - commitsStoredOffsets: whether stored offsets are committed in the background, once a second.
  /// - Throws: a property that doesn't exist, doesn't take its value, or may not be changed, by name.
  public init(
    _ configuration: ClientConfiguration, group: String, commitsStoredOffsets: Bool = true
  ) throws(KafkaError) {
    guard !group.isEmpty else {
      throw KafkaError(
        RD_KAFKA_RESP_ERR__INVALID_ARG, "consumer group", detail: "its name is empty", remedy: "Give the group a name")
    }
    // How long fetching waits after the queue was full; older versions don't have the property (see `wakeFetchers`).
    let backoff = Self.sleepsOverFullQueue ? [] : [("fetch.queue.backoff.ms", "10")]
    let client = try ClientHandle(
      .consumer, configuration,
      defaults: backoff + [
        // The cooperative strategy of librdkafka 2.0 aborts the process when a member leaves early (#4312).
        ("partition.assignment.strategy", "range"),
        ("enable.auto.commit", commitsStoredOffsets ? "true" : "false"), ("auto.commit.interval.ms", "1000"),
        ("session.timeout.ms", "45000"), ("heartbeat.interval.ms", "3000"), ("allow.auto.create.topics", "false"),
        // New partitions are found by it; at the default of five minutes they would lie unread for so long.
        ("topic.metadata.refresh.interval.ms", "30000"),
        // A broker with news answers at once; the wait delays only partitions that join meanwhile. The rest bounds what is
        // fetched ahead: answers come compressed and are several times as large in memory, and the limit of the queue is only
        // looked at between answers, so small ones keep the whole to some 20 MB.
        ("fetch.wait.max.ms", "50"), ("fetch.error.backoff.ms", "100"), ("queued.min.messages", "10000"),
        ("queued.max.messages.kbytes", "8192"), ("fetch.max.bytes", "1048576"),
        ("max.partition.fetch.bytes", "32768"),
      ],
      required: [
        ("group.id", group, "it is the group the consumer was created for"),
        (
          "enable.auto.offset.store", "false",
          "an offset is stored when its record has been applied, not when it was read"
        ),
        (
          "auto.offset.reset", "earliest",
          "a group that has committed nothing yet would pass over what is there already"
        ),
        ("enable.partition.eof", "true", "the consumer tells by it that it has caught up"),
      ])
    // Errors and logs of the client come through the consumer's queue from now on, so that one poll serves both.
    unsafe _ = rd_kafka_poll_set_consumer(client.pointer)
    guard let queue = unsafe rd_kafka_queue_get_consumer(client.pointer) else {
      _ = client.destroy(within: .seconds(1))
      throw KafkaError(RD_KAFKA_RESP_ERR__UNKNOWN_GROUP, "creating a Kafka consumer")
    }
    self.client = client
    self.group = group
    unsafe self.queue = queue
    unsafe slots = .allocate(capacity: 1024)
    unsafe slots.initialize(repeating: nil)
  }

  deinit {
    // A handler would be given a consumer that is on its way out.
    handler = nil
    close(timeoutMilliseconds: 2_000)
    unsafe slots.deallocate()
  }

  // MARK: State

  /// Why the brokers can't be used at the moment: unreachable, or the login refused. Nil once something works again.
  ///
  /// librdkafka goes on trying; this is for telling an operator. It moves only while the consumer is polled.
  public var problem: KafkaError? { client.state.problem }

  /// Set when the client can't go on: close it and create another.
  public var fatalError: KafkaError? { phase == .closed ? nil : client.fatalError }

  /// After how many milliseconds without a sign of life the group gives a member's partitions to others.
  public var sessionTimeout: Int { client.setting("session.timeout.ms").flatMap { Int($0) } ?? 45_000 }

  /// Asks the brokers for a sign of life, which also clears ``problem`` when they give one: an idle consumer doesn't
  /// notice by itself that they are back.
  public func checkConnection(timeoutMilliseconds: Int = 5_000) throws(KafkaError) {
    try open("connecting to Kafka")
    try Metadata.checkConnection(client, timeoutMilliseconds: timeoutMilliseconds)
  }

  /// For tests.
  package func injectFatalError() { client.injectFatalError() }

  // MARK: What to read

  /// Joins the group to share the topics with its other members. Takes effect while the consumer is polled.
  ///
  /// A topic that doesn't exist is reported by the poll, and read from once it does. The handler is kept until the
  /// consumer is closed.
  public func subscribe(_ topics: [String], handler: any RebalanceHandler) throws(KafkaError) {
    let doing = "subscribing to \(topics.joined(separator: ", "))"
    try open(doing)
    let list = PartitionList(topics.map { TopicPartition(topic: $0, partition: -1) })
    self.handler = handler
    for topic in topics { _ = index(ofTopic: topic) }
    let code = unsafe list.withPointer { unsafe rd_kafka_subscribe(client.pointer, $0) }
    guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
    throw KafkaError(code, doing, remedy: "Check the names of the topics")
  }

  /// Reads exactly these partitions, from the given positions, without being a member of the group. Replaces what was
  /// assigned before.
  public func assign(_ positions: [(TopicPartition, Position)]) throws(KafkaError) {
    try open("assigning partitions")
    let offsets = Dictionary(positions.map { ($0.0, $0.1.offset) }, uniquingKeysWith: { $1 })
    let partitions = positions.map(\.0)
    for partition in partitions { _ = index(ofTopic: partition.topic) }
    let list = PartitionList(offsets.keys) { offsets[$0] }
    let code = unsafe list.withPointer { unsafe rd_kafka_assign(client.pointer, $0) }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
      throw KafkaError(code, "assigning \(partitions.map(\.description).joined(separator: ", "))")
    }
    epoch += 1
    unpauseRevoked(Array(paused))
    for index in progress.indices { progress[index].removeAll() }
  }

  /// The partitions this consumer reads now.
  public var assignment: [TopicPartition] {
    if phase == .closed { return [] }
    var list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
    guard unsafe rd_kafka_assignment(client.pointer, &list) == RD_KAFKA_RESP_ERR_NO_ERROR, let list = unsafe list
    else { return [] }
    let owned = unsafe PartitionList(owning: list)
    var partitions: [TopicPartition] = []
    owned.visit { partition, _, _ in partitions.append(partition) }
    return partitions
  }

  func open(_ doing: String) throws(KafkaError) {
    if phase == .closed { throw .closed(doing) }
  }

  /// The index of a topic in ``topicNames``, which it joins if it is new.
  func index(ofTopic name: String) -> Int {
    if let known = topicNames.firstIndex(of: name) { return known }
    topicNames.append(name)
    progress.append([])
    return topicNames.count - 1
  }
}
