internal import CRdKafka
internal import Dispatch
internal import Synchronization

/// A Kafka broker inside this process, reachable over loopback by others too: librdkafka's mock cluster.
///
/// For a first run and for tests. It keeps everything in memory and **drops the oldest records silently** beyond 5 MiB or
/// 100,000 batches a partition; it knows no administration, no lookup by time, no compaction. The first join of a group
/// takes three seconds; later rebalances wait for the session timeout less one second.
@safe public final class EmbeddedBroker: Sendable {
  /// `host:port` of each broker, separated by commas.
  public let bootstrapServers: String
  /// The broker ids are 1 to this.
  public let brokerCount: Int

  /// Properties for clients of the embedded broker: with the usual session timeout of 45 s its second rebalance would
  /// take 44 s, and a record would wait for the fetch before it to time out.
  public static var clientProperties: [(name: String, value: String)] {
    [("session.timeout.ms", "6000"), ("heartbeat.interval.ms", "500"), ("fetch.wait.max.ms", "10")]
  }

  private let owner: ClientHandle
  private let cluster: Mutex<OpaquePointer?>

  /// Starts the brokers with these topics; others are made on first use, with four partitions.
  public init(
    topics: [(name: String, partitions: Int)] = [], brokers: Int = 1,
    onEvent: (@Sendable (ClientEvent) -> Void)? = nil
  ) throws(KafkaError) {
    // The library's mock cluster needs a client to live in; this one connects nowhere but to its own cluster.
    let owner = try ClientHandle(
      .producer, ClientConfiguration(brokers: "127.0.0.1:9", clientID: "embedded-broker", onEvent: onEvent))
    let pointer = unsafe rd_kafka_mock_cluster_new(owner.pointer, Int32(clamping: max(brokers, 1)))
    guard let pointer = unsafe pointer, let servers = unsafe rd_kafka_mock_cluster_bootstraps(pointer) else {
      _ = owner.destroy(within: .seconds(1))
      throw KafkaError(
        RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "starting the embedded broker", detail: "no port on 127.0.0.1")
    }
    self.owner = owner
    brokerCount = max(brokers, 1)
    bootstrapServers = unsafe String(cString: servers)
    unsafe cluster = Mutex(pointer)
    for (name, partitions) in topics { try createTopic(name, partitions: partitions) }
  }

  deinit { close() }

  /// Stops the brokers and forgets all records. Close the clients first, or they will keep trying. Calling it again does
  /// nothing.
  public func close() {
    let wasOpen = unsafe cluster.withLock { pointer in
      guard let open = unsafe pointer else { return false }
      unsafe rd_kafka_mock_cluster_destroy(open)
      unsafe pointer = nil
      return true
    }
    if wasOpen { _ = owner.destroy(within: .seconds(5)) }
  }

  // MARK: Topics

  /// Makes a topic.
  ///
  /// - Throws: it exists.
  public func createTopic(_ name: String, partitions: Int) throws(KafkaError) {
    try unsafe run("creating topic \(name) on the embedded broker") {
      unsafe rd_kafka_mock_topic_create($0, name, Int32(clamping: partitions), 1)
    }
  }

  // MARK: Faults

  /// Makes the brokers answer questions about the topic with an error; code 0 ends it.
  public func setTopicError(_ name: String, code: Int32) throws(KafkaError) {
    try unsafe run("setting an error of topic \(name)") {
      unsafe rd_kafka_mock_topic_set_error($0, name, rd_kafka_resp_err_t(rawValue: code))
      return RD_KAFKA_RESP_ERR_NO_ERROR
    }
  }

  /// A request of the Kafka protocol, by its API key.
  public struct Request: Sendable {
    public let apiKey: Int16
    public init(apiKey: Int16) { self.apiKey = apiKey }

    public static let produce = Request(apiKey: 0)
    public static let fetch = Request(apiKey: 1)
    public static let metadata = Request(apiKey: 3)
    public static let offsetCommit = Request(apiKey: 8)
    public static let offsetFetch = Request(apiKey: 9)
    public static let findCoordinator = Request(apiKey: 10)
    public static let joinGroup = Request(apiKey: 11)
    public static let heartbeat = Request(apiKey: 12)
    public static let initProducerID = Request(apiKey: 22)
  }

  /// Answers the next requests of this kind with these codes, one each; `_TRANSPORT` (-195) cuts the connection.
  public func failNext(_ request: Request, codes: [Int32]) throws(KafkaError) {
    try unsafe run("preparing errors of the embedded broker") { cluster in
      let errors = codes.map { rd_kafka_resp_err_t(rawValue: $0) }
      unsafe rd_kafka_mock_push_request_errors_array(cluster, request.apiKey, errors.count, errors)
      return RD_KAFKA_RESP_ERR_NO_ERROR
    }
  }

  /// Takes the prepared errors back.
  public func clearFailures(of request: Request) throws(KafkaError) {
    try unsafe run("clearing errors of the embedded broker") {
      unsafe rd_kafka_mock_clear_request_errors($0, request.apiKey)
      return RD_KAFKA_RESP_ERR_NO_ERROR
    }
  }

  /// Cuts all connections of a broker (nil: of all) and refuses new ones.
  public func setDown(broker: Int? = nil) throws(KafkaError) {
    try unsafe run("taking the embedded broker down") {
      unsafe rd_kafka_mock_broker_set_down($0, broker.map { Int32(clamping: $0) } ?? -1)
    }
  }

  /// Accepts connections again.
  public func setUp(broker: Int? = nil) throws(KafkaError) {
    try unsafe run("bringing the embedded broker up") {
      unsafe rd_kafka_mock_broker_set_up($0, broker.map { Int32(clamping: $0) } ?? -1)
    }
  }

  /// Delays every answer of a broker (nil: of all).
  public func setRoundTripTime(milliseconds: Int, broker: Int? = nil) throws(KafkaError) {
    try unsafe run("delaying the embedded broker") {
      unsafe rd_kafka_mock_broker_set_rtt(
        $0, broker.map { Int32(clamping: $0) } ?? -1, Int32(clamping: milliseconds))
    }
  }

  private func run(_ doing: String, _ body: (OpaquePointer) -> rd_kafka_resp_err_t) throws(KafkaError) {
    let code = unsafe cluster.withLock { pointer -> rd_kafka_resp_err_t in
      guard let pointer = unsafe pointer else { return RD_KAFKA_RESP_ERR__DESTROY }
      return unsafe body(pointer)
    }
    if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(code, doing) }
  }
}
