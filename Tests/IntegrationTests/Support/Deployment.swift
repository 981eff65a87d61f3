import Foundation
import Kafka
import SocialEvents
import Testing

/// What one deployment of the command works with: brokers, topics, a consumer group and a store, all its own.
final class Deployment: Sendable {
  let folder: TestFolder
  let kind: BrokerKind
  let brokers: String
  let topics: Topics
  let group: String
  let partitions: Int
  let store: OwnStore
  private let environment: [String: String]
  /// Lives as long as the deployment.
  private let embedded: EmbeddedBrokerProcess?

  /// - Parameters:
  ///   - ownBrokers: the address of a real Kafka to use instead of the one that tests share.
  ///   - partitions: of each topic.
  ///   - environment: options for all commands, as variables; they win over those of the deployment.
  static func start(
    on kind: BrokerKind, at ownBrokers: String? = nil, store: StoreKind = .sqlite, partitions: Int = 4,
    environment: [String: String] = [:], createsTopics: Bool = true
  ) async throws -> Deployment {
    let folder = try TestFolder()
    let store = try OwnStore(store, in: folder)
    switch kind {
    case .embedded:
      let broker = try await EmbeddedBrokerProcess.start(
        topicPrefix: Topics.defaultPrefix, partitions: partitions, in: folder)
      return Deployment(
        folder, kind, broker.brokers, prefix: Topics.defaultPrefix, partitions, broker, store, environment)
    case .kafka:
      let brokers = try #require(ownBrokers ?? RealKafka.brokers)
      let deployment = Deployment(
        folder, kind, brokers, prefix: RealKafka.newPrefix(), partitions, nil, store, environment)
      if createsTopics {
        try await deployment.run(["topics", "create", "--partitions", "\(partitions)", "--replication-factor", "1"])
      }
      return deployment
    }
  }

  private init(
    _ folder: TestFolder, _ kind: BrokerKind, _ brokers: String, prefix: String, _ partitions: Int,
    _ embedded: EmbeddedBrokerProcess?, _ store: OwnStore, _ environment: [String: String]
  ) {
    self.folder = folder
    self.kind = kind
    self.brokers = brokers
    self.topics = Topics(prefix: prefix)
    self.group = prefix + "workers"
    self.partitions = partitions
    self.embedded = embedded
    self.store = store
    let own = [
      "FANOUT_BROKERS": brokers, "FANOUT_TOPIC_PREFIX": prefix, "FANOUT_GROUP": group,
      "FANOUT_STORE": store.option,
      // A worker that was killed is noticed soon, and the embedded broker takes this long for a rebalance.
      "FANOUT_KAFKA": "session.timeout.ms=6000;heartbeat.interval.ms=500",
    ]
    self.environment = own.merging(environment) { $1 }
  }

  /// For clients within the tests.
  var client: ClientConfiguration { ClientConfiguration(brokers: brokers, clientID: "tests") }

  // MARK: Commands

  /// Runs a command to its end.
  @discardableResult
  func run(
    _ arguments: [String], environment: [String: String] = [:], input: String = "/dev/null",
    expecting status: Int32? = 0
  ) async throws -> Fanout.Result {
    try await Fanout.run(
      arguments, environment: self.environment.merging(environment) { $1 }, input: input, in: folder,
      expecting: status)
  }

  /// Starts a command and leaves it running.
  func start(_ arguments: [String], environment: [String: String] = [:]) throws -> ChildProcess {
    try Fanout.start(arguments, environment: self.environment.merging(environment) { $1 }, in: folder)
  }

  /// Starts a worker and leaves it running.
  func startWorker(_ options: [String] = [], environment: [String: String] = [:]) throws -> ChildProcess {
    try start(["worker"] + options, environment: environment)
  }

  /// Starts workers, and waits until each has as many partitions as the others.
  func startWorkers(_ count: Int) async throws -> [ChildProcess] {
    let workers = try (0..<count).map { _ in try startWorker() }
    // Of five topics with events and one with tasks.
    let share = "assigned \(partitions / count * 6) partitions"
    try await eventually("each worker is \(share)", else: workers.map(\.report).joined(separator: "\n")) {
      try workers.mustRun()
      return workers.allSatisfy { $0.standardError.contains(share) }
    }
    return workers
  }

  /// Runs a worker until it has caught up.
  @discardableResult
  func catchUp(_ options: [String] = [], environment: [String: String] = [:]) async throws -> WorkerReport {
    let result = try await run(["worker", "--until-caught-up"] + options, environment: environment)
    return try WorkerReport(log: result.error)
  }

  /// Emits a file of structured events.
  func emit(_ path: String) async throws {
    try await run(["emit", path])
  }

  /// Emits structured events, one a line.
  func emit(lines: String) async throws {
    try await emit(try folder.write("events.ndjson", lines))
  }

  /// The digest of the whole dump.
  /// - Parameter store: another store than the deployment's.
  func digest(of store: OwnStore? = nil) async throws -> String {
    let result = try await run(["digest"], environment: ["FANOUT_STORE": (store ?? self.store).option])
    return result.lines.first.map { String($0.prefix(64)) } ?? ""
  }

  /// The lines of the dump.
  func dump(of store: OwnStore? = nil) async throws -> [Substring] {
    try await run(["dump"], environment: ["FANOUT_STORE": (store ?? self.store).option]).lines
  }

  // MARK: What lies in Kafka

  /// The group's committed offsets, by partition, of the topics that workers read. No commit counts as 0.
  func committed() throws -> [TopicPartition: Int64] { try offsets().mapValues(\.committed) }

  /// How many records of events and tasks the group has not acknowledged.
  func lag() throws -> Int { try offsets().values.reduce(0) { $0 + Int($1.end - $1.committed) } }

  private func offsets() throws -> [TopicPartition: (committed: Int64, end: Int64)] {
    let consumer = try Consumer(client, group: group, commitsStoredOffsets: false)
    defer { consumer.close(timeoutMilliseconds: 2000) }
    let partitions = try consumer.partitions(of: topics.events + [topics.tasks])
    let committed = try consumer.committed(partitions)
    var offsets: [TopicPartition: (committed: Int64, end: Int64)] = [:]
    for partition in partitions {
      offsets[partition] = (committed[partition] ?? 0, try consumer.watermarks(partition).high)
    }
    return offsets
  }

  /// Waits until the group has acknowledged all events and tasks.
  func allAcknowledged(by workers: [ChildProcess]) async throws {
    try await eventually(
      "all is acknowledged", else: workers.map(\.report).joined(separator: "\n")
    ) {
      try workers.mustRun()
      return try lag() == 0
    }
  }
}
