import Kafka
import Synchronization
import Testing

/// How long anything may take before a test gives up on it: far more than it needs, as machines are slow at times.
let patience = Duration.seconds(60)

/// Calls `step` until it says that it is done.
func eventually(
  _ what: String, within limit: Duration = patience, sourceLocation: SourceLocation = #_sourceLocation,
  _ step: () throws -> Bool
) throws {
  let deadline = ContinuousClock.now + limit
  while try !step() {
    if ContinuousClock.now > deadline {
      Issue.record("gave up waiting for: \(what)", sourceLocation: sourceLocation)
      throw GaveUp()
    }
  }
}

struct GaveUp: Error {}

/// The error that `body` throws.
func kafkaError<R>(
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws(KafkaError) -> R
) -> KafkaError? {
  do {
    _ = try body()
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
    return nil
  } catch {
    return error
  }
}

/// A broker with topic `t` and what it takes to use it.
struct Setup {
  let broker: EmbeddedBroker
  var configuration: ClientConfiguration

  init(partitions: Int = 1, onEvent: (@Sendable (ClientEvent) -> Void)? = nil) throws {
    broker = try EmbeddedBroker(topics: [("t", partitions)])
    configuration = ClientConfiguration(
      brokers: broker.bootstrapServers, properties: EmbeddedBroker.clientProperties, onEvent: onEvent)
  }

  func producer(_ properties: (name: String, value: String)...) throws -> Producer {
    var configuration = configuration
    configuration.properties += properties
    return try Producer(configuration)
  }

  /// Sends numbered values 0, 1, … to partitions in turn.
  func fill(_ numbers: Range<Int>, partitions: Int = 1) throws {
    let producer = try Producer(configuration)
    try producer.sendAndWait(
      numbers.map {
        ProducerRecord(topic: "t", value: Array("\($0)".utf8), partition: Int32($0 % partitions))
      }, timeoutMilliseconds: 30_000)
    producer.close(timeoutMilliseconds: 5_000)
  }
}

func part(_ number: Int32 = 0, of topic: String = "t") -> TopicPartition {
  TopicPartition(topic: topic, partition: number)
}

extension OwnedRecord {
  var text: String? { value.map { String(decoding: $0, as: UTF8.self) } }
}

extension Consumer {
  /// Polls until `count` records have come, and returns all that came.
  func take(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) throws -> [OwnedRecord] {
    var records: [OwnedRecord] = []
    try eventually("\(count) records", sourceLocation: sourceLocation) {
      try poll(max: 100, timeoutMilliseconds: 50) { records.append($0.owned()) }
      return records.count >= count
    }
    return records
  }

  /// Polls until the ends of the partitions are reached, and returns what came.
  func takeToEnd(_ partitions: [TopicPartition]) throws -> [OwnedRecord] {
    var records: [OwnedRecord] = []
    try eventually("the end of \(partitions)") {
      try poll(max: 100, timeoutMilliseconds: 50) { records.append($0.owned()) }
      return partitions.allSatisfy { hasReachedEnd($0) }
    }
    return records
  }
}

/// Collects from any thread.
final class Collected<Element: Sendable>: Sendable {
  private let storage = Mutex<[Element]>([])
  func append(_ element: Element) { storage.withLock { $0.append(element) } }
  var all: [Element] { storage.withLock { $0 } }
}

/// Notes what happens to a consumer's partitions, and does what a test asks at a revocation.
final class Recorder: RebalanceHandler {
  enum Event: Equatable {
    case assigned([TopicPartition])
    case revoked([TopicPartition])
    case lost([TopicPartition])
  }
  var events: [Event] = []
  var onAssign: ([TopicPartition], Consumer) -> Void = { _, _ in }
  var onRevoke: ([TopicPartition], Consumer) -> Void = { _, _ in }

  func assigned(_ partitions: [TopicPartition], by consumer: Consumer) {
    events.append(.assigned(sorted(partitions)))
    onAssign(partitions, consumer)
  }
  func revoked(_ partitions: [TopicPartition], by consumer: Consumer) {
    events.append(.revoked(sorted(partitions)))
    onRevoke(partitions, consumer)
  }
  func lost(_ partitions: [TopicPartition], by consumer: Consumer) { events.append(.lost(sorted(partitions))) }

  private func sorted(_ partitions: [TopicPartition]) -> [TopicPartition] {
    partitions.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
  }
}

/// One member of a group that applies what it reads at once, and commits at the revoke.
final class Member {
  let consumer: Consumer
  let recorder = Recorder()
  private(set) var seen: [String] = []
  private(set) var inFlight: [TopicPartition: Int64] = [:]
  /// For each partition revoked with something in flight, whether its offset could still be stored.
  private(set) var stored: [Bool] = []
  private(set) var commitErrors: [KafkaError] = []

  init(_ configuration: ClientConfiguration, group: String, topics: [String]) throws {
    consumer = try Consumer(configuration, group: group)
    recorder.onRevoke = { [unowned self] partitions, consumer in
      // What was delivered before the revoke has all been seen by now, so it can be finished and committed here.
      for partition in partitions {
        guard let next = inFlight.removeValue(forKey: partition) else { continue }
        stored.append((try? consumer.storeOffset(partition, next: next)) ?? false)
      }
      do throws(KafkaError) { try consumer.commitStored(timeoutMilliseconds: 20_000) } catch {
        commitErrors.append(error)
      }
      // Still assigned: the revoke is acknowledged when this returns.
      #expect(Set(consumer.assignment).isSuperset(of: partitions))
    }
    try consumer.subscribe(topics, handler: recorder)
  }

  func poll() throws {
    try consumer.poll(max: 10, timeoutMilliseconds: 20) { record in
      inFlight[record.topicPartition] = record.offset + 1
      seen.append("\(record.topicPartition)@\(record.offset)")
    }
  }

  var hasPartitions: Bool {
    recorder.events.contains { if case .assigned(let partitions) = $0 { !partitions.isEmpty } else { false } }
  }
}
