import Foundation
import Kafka
import SQLiteStore
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
  private let environment: [String: String]
  /// Lives as long as the deployment.
  private let embedded: EmbeddedBrokerProcess?

  /// - Parameters:
  ///   - partitions: of each topic.
  ///   - environment: options for all commands, as variables; they win over those of the deployment.
  static func start(
    on kind: BrokerKind, partitions: Int = 4, environment: [String: String] = [:], createsTopics: Bool = true
  ) async throws -> Deployment {
    let folder = try TestFolder()
    switch kind {
    case .embedded:
      let broker = try await EmbeddedBrokerProcess.start(
        topicPrefix: Topics.defaultPrefix, partitions: partitions, in: folder)
      return Deployment(
        folder, kind, broker.brokers, prefix: Topics.defaultPrefix, partitions, broker, environment)
    case .kafka:
      let brokers = try #require(RealKafka.brokers)
      let deployment = Deployment(folder, kind, brokers, prefix: RealKafka.newPrefix(), partitions, nil, environment)
      if createsTopics {
        try await deployment.run(["topics", "create", "--partitions", "\(partitions)", "--replication-factor", "1"])
      }
      return deployment
    }
  }

  private init(
    _ folder: TestFolder, _ kind: BrokerKind, _ brokers: String, prefix: String, _ partitions: Int,
    _ embedded: EmbeddedBrokerProcess?, _ environment: [String: String]
  ) {
    self.folder = folder
    self.kind = kind
    self.brokers = brokers
    self.topics = Topics(prefix: prefix)
    self.group = prefix + "workers"
    self.partitions = partitions
    self.embedded = embedded
    let own = [
      "FANOUT_BROKERS": brokers, "FANOUT_TOPIC_PREFIX": prefix, "FANOUT_GROUP": group,
      "FANOUT_STORE": "sqlite:" + folder.file("store.db"),
      // A worker that was killed is noticed soon, and the embedded broker takes this long for a rebalance.
      "FANOUT_KAFKA": "session.timeout.ms=6000;heartbeat.interval.ms=500",
    ]
    self.environment = own.merging(environment) { $1 }
  }

  var storePath: String { folder.file("store.db") }
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
  func digest(of store: String? = nil) async throws -> String {
    let result = try await run(["digest"], environment: store.map { ["FANOUT_STORE": "sqlite:\($0)"] } ?? [:])
    return result.lines.first.map { String($0.prefix(64)) } ?? ""
  }

  /// The lines of the dump.
  func dump(of store: String? = nil) async throws -> [Substring] {
    try await run(["dump"], environment: store.map { ["FANOUT_STORE": "sqlite:\($0)"] } ?? [:]).lines
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
      for worker in workers where !worker.isRunning { throw TestFailure("a worker ended: \(worker.report)") }
      return try lag() == 0
    }
  }

  // MARK: What lies in the store

  /// How many edges and posts the store knows, absent and deleted ones too; 0 while there is no store.
  func registerCount() -> Int {
    guard let database = try? Connection(path: storePath, access: .readOnly),
      let count = try? database.statement("SELECT (SELECT count(*) FROM edge) + (SELECT count(*) FROM post)")
    else { return 0 }
    return (try? count.first { Int(count.integer(0)) }) ?? 0
  }
}
