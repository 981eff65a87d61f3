internal import CRdKafka
internal import Dispatch
internal import Glibc

/// Makes and examines topics. Every call uses a connection of its own and needs a real Kafka: the embedded broker knows
/// no administration except ``metadata(topics:with:timeoutMilliseconds:)``.
///
/// Groups and their offsets are never deleted here: librdkafka aborts the process when the broker lacks those calls
/// (#3663). Offsets are altered by committing, see ``Consumer/commit(_:timeoutMilliseconds:)``.
public enum Admin {
  /// A topic to be made.
  public struct TopicSpec: Sendable {
    public var name: String
    public var partitions: Int
    /// -1 takes the brokers' default.
    public var replicationFactor: Int
    /// Topic settings such as `cleanup.policy`.
    public var configuration: [String: String]

    public init(name: String, partitions: Int, replicationFactor: Int = -1, configuration: [String: String] = [:]) {
      self.name = name
      self.partitions = partitions
      self.replicationFactor = replicationFactor
      self.configuration = configuration
    }
  }

  /// What became of one topic.
  public enum Outcome: Sendable {
    case created
    /// It was there already, and is unchanged, whatever its partitions and settings.
    case existed
    case failed(KafkaError)
  }

  /// Makes topics, and waits until the brokers know them.
  ///
  /// - Returns: the outcome of each, by name.
  /// - Throws: when the brokers did not answer.
  public static func createTopics(
    _ specs: [TopicSpec], with configuration: ClientConfiguration, timeoutMilliseconds: Int = 15_000
  ) throws(KafkaError) -> [String: Outcome] {
    if specs.isEmpty { return [:] }
    return try withClient(configuration) { client throws(KafkaError) in
      let deadline = Deadline(milliseconds: timeoutMilliseconds)
      let topics = unsafe OwnedPointers { unsafe rd_kafka_NewTopic_destroy($0) }
      for spec in specs { try unsafe topics.append(newTopic(spec)) }
      let doing = "creating \(specs.count == 1 ? "topic" : "topics") \(specs.map(\.name).joined(separator: ", "))"
      let answer = try unsafe AdminAnswer(
        client, RD_KAFKA_ADMIN_OP_CREATETOPICS, RD_KAFKA_EVENT_CREATETOPICS_RESULT, timeoutMilliseconds, doing
      ) { options, queue in
        unsafe topics.withArray { unsafe rd_kafka_CreateTopics(client.pointer, $0, $1, options, queue) }
      }
      let outcomes = answer.createdTopics()
      for case (let name, .created) in outcomes { waitUntilKnown(name, client, deadline) }
      return outcomes
    }
  }

  /// Takes topics away; one that is not there is none to take away. For tests, which make many.
  package static func deleteTopics(
    _ names: [String], with configuration: ClientConfiguration, timeoutMilliseconds: Int = 15_000
  ) throws(KafkaError) {
    try withClient(configuration) { client throws(KafkaError) in
      let topics = unsafe OwnedPointers { unsafe rd_kafka_DeleteTopic_destroy($0) }
      for name in names { if let topic = unsafe rd_kafka_DeleteTopic_new(name) { unsafe topics.append(topic) } }
      _ = try unsafe AdminAnswer(
        client, RD_KAFKA_ADMIN_OP_DELETETOPICS, RD_KAFKA_EVENT_DELETETOPICS_RESULT, timeoutMilliseconds,
        "deleting topics \(names.joined(separator: ", "))"
      ) { options, queue in
        unsafe topics.withArray { unsafe rd_kafka_DeleteTopics(client.pointer, $0, $1, options, queue) }
      }
    }
  }

  /// The cluster's brokers and, of all topics or of those named, partitions and replication.
  ///
  /// - Throws: brokers that can't be reached. That a topic doesn't exist is in its entry.
  public static func metadata(
    topics: [String]? = nil, with configuration: ClientConfiguration, timeoutMilliseconds: Int = 10_000
  ) throws(KafkaError) -> ClusterMetadata {
    // A consumer asks without creating the topic on brokers that create on demand.
    let quiet = [("allow.auto.create.topics", "false"), ("group.id", "fanout-admin")]
    return try withClient(configuration, kind: .consumer, defaults: quiet) { client throws(KafkaError) in
      guard let topics else { return try Metadata.fetch(nil, client: client, timeoutMilliseconds: timeoutMilliseconds) }
      var brokers: [String] = []
      var found: [TopicMetadata] = []
      for topic in topics {
        let part = try Metadata.fetch(topic, client: client, timeoutMilliseconds: timeoutMilliseconds)
        brokers = part.brokers
        found += part.topics.filter { $0.name == topic }
      }
      return ClusterMetadata(brokers: brokers, topics: found)
    }
  }

  /// The settings of topics, defaults included, by topic and name. Secret values are left out.
  ///
  /// - Throws: a topic that doesn't exist, by name; brokers that can't be reached.
  public static func describeConfigs(
    topics: [String], with configuration: ClientConfiguration, timeoutMilliseconds: Int = 15_000
  ) throws(KafkaError) -> [String: [String: String]] {
    if topics.isEmpty { return [:] }
    return try withClient(configuration) { client throws(KafkaError) in
      let resources = unsafe OwnedPointers { unsafe rd_kafka_ConfigResource_destroy($0) }
      for topic in topics {
        guard let resource = unsafe rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic) else {
          throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, "topic \"\(topic)\"", detail: "not a topic's name")
        }
        unsafe resources.append(resource)
      }
      let doing = "asking for the settings of \(topics.joined(separator: ", "))"
      let answer = try unsafe AdminAnswer(
        client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT, timeoutMilliseconds, doing
      ) { options, queue in
        unsafe resources.withArray { unsafe rd_kafka_DescribeConfigs(client.pointer, $0, $1, options, queue) }
      }
      return try answer.describedTopics()
    }
  }

  /// The controller answers before the brokers have heard of the topic: a client that asks at once is told that there is
  /// none. Not to know it at the deadline is no failure, the topic is made.
  private static func waitUntilKnown(_ topic: String, _ client: ClientHandle, _ deadline: Deadline) {
    while !deadline.hasPassed {
      let left = Int(deadline.remaining)
      if (try? Metadata.partitionCount(of: topic, client: client, timeoutMilliseconds: left)) != nil { return }
      usleep(20_000)
    }
  }

  private static func newTopic(_ spec: TopicSpec) throws(KafkaError) -> OpaquePointer {
    let doing = "topic \(spec.name)"
    let (pointer, text) = unsafe withCText {
      unsafe rd_kafka_NewTopic_new(
        spec.name, Int32(clamping: spec.partitions), Int32(clamping: spec.replicationFactor), $0, $1)
    }
    guard let pointer = unsafe pointer else {
      throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, doing, detail: text)
    }
    for (name, value) in spec.configuration {
      let code = unsafe rd_kafka_NewTopic_set_config(pointer, name, value)
      if code != RD_KAFKA_RESP_ERR_NO_ERROR {
        unsafe rd_kafka_NewTopic_destroy(pointer)
        throw KafkaError(code, "\(doing), setting \(name)")
      }
    }
    return unsafe pointer
  }

  private static func withClient<R>(
    _ configuration: ClientConfiguration, kind: ClientHandle.Kind = .producer, defaults: [(String, String)] = [],
    _ body: (ClientHandle) throws(KafkaError) -> R
  ) throws(KafkaError) -> R {
    let client = try ClientHandle(kind, configuration, defaults: defaults)
    defer { _ = client.destroy(within: .seconds(5)) }
    return try body(client)
  }
}
