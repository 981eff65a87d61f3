internal import CRdKafka
internal import Dispatch
internal import Glibc
internal import Synchronization

/// Sends records to Kafka, at least once and in the order of the calls within a partition.
///
/// May be used from any thread. A thread of its own serves delivery reports, so nothing has to be polled.
@safe public final class Producer: Sendable {
  /// What the producer is tuned for.
  public enum Mode: Sendable {
    /// Requests and tasks: batches wait 5 ms.
    case lowLatency
    /// Imports and replays: batches wait 50 ms and the queue is larger.
    case bulk
  }

  let client: ClientHandle
  let gate = Gate()
  /// How long a record may wait for its acknowledgement, and so how long ``send(_:onDelivery:)`` waits for room.
  let messageTimeoutMilliseconds: Int
  let service = ServiceLoop()
  /// Holding a topic keeps its metadata: the first record to a topic without it waits 500 ms (#5032).
  private let warmed = Mutex<[WarmTopic]>([])

  /// Creates the client; connecting happens in the background.
  ///
  /// - Throws: a property that doesn't exist or doesn't take its value, by name. Brokers that can't be reached are not
  ///   an error here: see ``warm(topics:timeoutMilliseconds:)`` and ``problem``.
  public init(_ configuration: ClientConfiguration, mode: Mode = .lowLatency) throws(KafkaError) {
    let client = try ClientHandle(
      .producer, configuration, defaults: Producer.defaults(mode),
      required: [
        ("delivery.report.only.error", "false", "acknowledgements are counted by delivery reports"),
        ("max.in.flight.requests.per.connection", "1", Self.oneAtATime), ("max.in.flight", "1", Self.oneAtATime),
      ])
    self.client = client
    // 0 means no limit.
    let configured = client.setting("message.timeout.ms").flatMap { Int($0) } ?? 300_000
    messageTimeoutMilliseconds = configured == 0 ? Int(Int32.max) : configured
    guard service.start(client) else {
      _ = client.destroy(within: .seconds(1))
      throw KafkaError(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "starting a Kafka producer", detail: "no thread left")
    }
  }

  /// Brokers take any first number from a producer that they don't know. So of two batches the second may be stored where the first
  /// was refused for the moment, as on a topic just made; librdkafka (2.0.2, 2.16) then reports the first as stored, and it is lost.
  private static let oneAtATime = "with more requests under way a record may be acknowledged that is not stored"

  private static func defaults(_ mode: Mode) -> [(String, String)] {
    let common = [
      ("enable.idempotence", "true"), ("compression.type", "lz4"),
      // Where Java's clients would put the key; null keys spread.
      ("partitioner", "murmur2_random"),
      // Room for a dead letter: its source's bytes and the headers that say why.
      ("message.max.bytes", "2097152"),
    ]
    return switch mode {
    case .lowLatency:
      common + [
        ("linger.ms", "5"), ("message.timeout.ms", "120000"), ("queue.buffering.max.messages", "100000"),
        ("queue.buffering.max.kbytes", "32768"),
      ]
    case .bulk:
      common + [
        ("linger.ms", "50"), ("message.timeout.ms", "300000"), ("queue.buffering.max.messages", "250000"),
        ("queue.buffering.max.kbytes", "65536"),
      ]
    }
  }

  deinit { close(timeoutMilliseconds: 1_000) }

  // MARK: State

  /// Records acknowledged and failed since the start, and the first failure. What was sent and is in neither is under way.
  public var counts: (delivered: Int, failed: Int, firstFailure: KafkaError?) { client.state.deliveries.counts }

  /// Records sent that have no delivery report yet.
  public var outstanding: Int {
    guard gate.enter() else { return 0 }
    defer { gate.leave() }
    return Int(unsafe rd_kafka_outq_len(client.pointer))
  }

  /// Why the brokers can't be used at the moment: unreachable, or the login refused. Nil once something works again.
  ///
  /// librdkafka goes on trying; this is for telling an operator.
  public var problem: KafkaError? { client.state.problem }

  /// Set when the client can't go on (#4438): close it, create another, and send again what has no delivery report.
  public var fatalError: KafkaError? {
    guard gate.enter() else { return nil }
    defer { gate.leave() }
    return client.fatalError
  }

  /// Asks the brokers for a sign of life, which also clears ``problem`` when they give one.
  public func checkConnection(timeoutMilliseconds: Int = 5_000) throws(KafkaError) {
    guard gate.enter() else { throw .closed("connecting to Kafka") }
    defer { gate.leave() }
    try Metadata.checkConnection(client, timeoutMilliseconds: timeoutMilliseconds)
  }

  /// For tests.
  package func injectFatalError() { client.injectFatalError() }

  // MARK: Life

  /// Fetches the topics' metadata, so that the first record doesn't wait for it.
  ///
  /// - Throws: a topic that doesn't exist, by name, or brokers that can't be reached.
  public func warm(topics: [String], timeoutMilliseconds: Int = 10_000) throws(KafkaError) {
    guard gate.enter() else { throw .closed("fetching the metadata of \(topics.joined(separator: ", "))") }
    defer { gate.leave() }
    for topic in topics {
      _ = try Metadata.partitionCount(of: topic, client: client, timeoutMilliseconds: timeoutMilliseconds)
      guard let handle = unsafe rd_kafka_topic_new(client.pointer, topic, nil) else { continue }
      let held = unsafe WarmTopic(handle)
      warmed.withLock { $0.append(held) }
    }
  }

  /// Sends what is queued without waiting for the linger time, and waits until everything is acknowledged or has failed.
  ///
  /// - Throws: when something has no delivery report at the deadline. Failures are in ``counts``.
  public func flush(timeoutMilliseconds: Int) throws(KafkaError) {
    guard gate.enter() else { throw .closed("flushing") }
    defer { gate.leave() }
    let code = unsafe rd_kafka_flush(client.pointer, cMilliseconds(timeoutMilliseconds))
    guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
    let left = unsafe rd_kafka_outq_len(client.pointer)
    throw client.state.explain(
      code, "\(left) records are not acknowledged after \(timeoutMilliseconds) ms", namesLogin: false)
  }

  /// Sends what is queued, for at most `timeoutMilliseconds`, then gives up on the rest and frees the client.
  ///
  /// Every `onDelivery` has been called when this returns, those given up with an error that ``KafkaError/isPurged``.
  /// Calling it again does nothing. Must not be called from `onDelivery`.
  public func close(timeoutMilliseconds: Int) {
    let deadline = Deadline(milliseconds: timeoutMilliseconds)
    guard gate.shut(waiting: .milliseconds(max(timeoutMilliseconds, 100))) == true else { return }
    unsafe _ = rd_kafka_flush(client.pointer, deadline.remaining)
    if unsafe rd_kafka_outq_len(client.pointer) > 0 {
      // Purged records get their delivery reports like any other; one more flush serves them.
      unsafe _ = rd_kafka_purge(client.pointer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT)
      unsafe _ = rd_kafka_flush(client.pointer, 1_000)
    }
    // A callback that doesn't return still uses the client: it is then left for the process to end with.
    guard service.stop() else { return }
    warmed.withLock { $0.removeAll() }
    _ = client.destroy(within: .milliseconds(max(Int(deadline.remaining), 1_000)))
  }
}

/// Holds a reference to a topic's metadata.
@safe private final class WarmTopic: Sendable {
  private nonisolated(unsafe) let pointer: OpaquePointer
  init(_ pointer: OpaquePointer) { unsafe self.pointer = pointer }
  deinit { unsafe rd_kafka_topic_destroy(pointer) }
}

/// The thread that serves a producer's callbacks.
final class ServiceLoop: Sendable {
  private let isStopped = Atomic<Bool>(false)
  private let thread = Atomic<UInt>(0)
  private let ended = DispatchSemaphore(value: 0)

  /// False when the system has no thread left.
  func start(_ client: ClientHandle) -> Bool {
    ServiceThread.run {
      self.thread.store(UInt(pthread_self()), ordering: .releasing)
      while !self.isStopped.load(ordering: .acquiring) { unsafe _ = rd_kafka_poll(client.pointer, 100) }
      self.ended.signal()
    }
  }

  var isCurrent: Bool { thread.load(ordering: .acquiring) == UInt(pthread_self()) }

  /// Waits until the thread has left librdkafka: within its poll of 100 ms. False when a callback holds it.
  func stop() -> Bool {
    isStopped.store(true, ordering: .releasing)
    return !isCurrent && ended.wait(timeout: .now() + .seconds(2)) == .success
  }
}
