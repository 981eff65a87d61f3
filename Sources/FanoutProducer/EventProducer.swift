public import Kafka
public import SocialEvents

/// Emits events to Kafka, for services (SPEC 3): binary CloudEvents, keyed by what each event asserts.
///
/// May be used from any thread or task. Records of one key keep their order.
public final class EventProducer: Sendable {
  /// Why an event was not emitted.
  public enum Failure: Error, Sendable, CustomStringConvertible {
    /// The workers would refuse it (SPEC 2).
    case invalid(InvalidEvent)
    /// Kafka did not take it; it may or may not have been stored. Emitting it again does no harm.
    case kafka(KafkaError)

    public var description: String {
      switch self {
      case .invalid(let reason): "invalid event: \(reason)"
      case .kafka(let error): "\(error)"
      }
    }
  }

  private let producer: Producer
  private let topics: Topics
  private let encoder = EventEncoder()

  /// Connecting happens in the background; `warm` waits for it.
  /// - Parameter mode: `.lowLatency` for a service that emits as things happen, `.bulk` for imports.
  public init(
    _ configuration: ClientConfiguration, topics: Topics = Topics(), mode: Producer.Mode = .lowLatency
  ) throws(KafkaError) {
    producer = try Producer(configuration, mode: mode)
    self.topics = topics
  }

  /// Fetches the metadata of the topics, so that the first events don't wait for it.
  /// - Throws: when the brokers can't be reached or a topic does not exist.
  public func warm() throws(KafkaError) {
    try producer.warm(topics: topics.events)
  }

  /// Emits an event and returns when the brokers have acknowledged it.
  public func emit(_ event: Event) async throws(Failure) {
    let data = try encoded(event)
    let result: Result<Void, Failure> = await withCheckedContinuation { continuation in
      queue(event, data, continuation)
    }
    try result.get()
  }

  private func queue(_ event: Event, _ data: [UInt8], _ continuation: CheckedContinuation<Result<Void, Failure>, Never>)
  {
    do {
      try send(event, data: data.span) { outcome in
        continuation.resume(returning: outcome.map { _ in () }.mapError { .kafka($0) })
      }
    } catch {
      continuation.resume(returning: .failure(error))
    }
  }

  /// Queues an event. Waits only while the queue is full; `flush` tells whether all were acknowledged.
  /// - Parameter onDelivery: called once with the outcome, from another thread; must be quick.
  public func send(
    _ event: Event, onDelivery: (@Sendable (Result<Delivery, KafkaError>) -> Void)? = nil
  ) throws(Failure) {
    let data = try encoded(event)
    try send(event, data: data.span, onDelivery: onDelivery)
  }

  /// Queues an event whose `data` object has been encoded already: members that this program does not know stay in it.
  package func send(
    _ event: Event, data: Span<UInt8>, onDelivery: (@Sendable (Result<Delivery, KafkaError>) -> Void)? = nil
  ) throws(Failure) {
    let key = event.assertion.key
    do {
      try producer.send(
        topic: topics.name(of: event.type.family), key: key.utf8.span, value: data, onDelivery: onDelivery
      ) { headers in
        for (name, value) in encoder.headers(of: event) { headers.add(name, value.utf8.span) }
      }
    } catch {
      throw .kafka(error)
    }
  }

  private func encoded(_ event: Event) throws(Failure) -> [UInt8] {
    var data: [UInt8] = []
    do { try encoder.appendData(of: event, to: &data) } catch { throw .invalid(error) }
    return data
  }

  /// Returns when all that was queued is acknowledged.
  /// - Throws: when something is not acknowledged by then, or has failed since the producer was made.
  public func flush(timeoutMilliseconds: Int) throws(KafkaError) {
    try producer.flush(timeoutMilliseconds: timeoutMilliseconds)
    if let failure = producer.counts.firstFailure { throw failure }
  }

  /// Events acknowledged and events failed, since the producer was made.
  public var counts: (delivered: Int, failed: Int) {
    let counts = producer.counts
    return (counts.delivered, counts.failed)
  }

  /// Gives what is queued this long to be acknowledged, then ends. Further events are refused.
  public func close(timeoutMilliseconds: Int) {
    producer.close(timeoutMilliseconds: timeoutMilliseconds)
  }
}
