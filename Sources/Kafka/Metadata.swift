internal import CRdKafka
internal import Glibc

/// A topic as the brokers describe it.
public struct TopicMetadata: Sendable {
  public let name: String
  /// Zero when there is an ``error``.
  public let partitionCount: Int
  /// The smallest number of replicas among the partitions.
  public let replicationFactor: Int
  /// Why the brokers don't describe it: it doesn't exist, or the login may not see it.
  public let error: KafkaError?
}

/// The brokers and topics of a cluster.
public struct ClusterMetadata: Sendable {
  /// `host:port` of each broker.
  public let brokers: [String]
  public let topics: [TopicMetadata]
}

enum Metadata {
  /// Asks any broker for the list of all.
  static func checkConnection(_ client: ClientHandle, timeoutMilliseconds: Int) throws(KafkaError) {
    var answer: UnsafePointer<rd_kafka_metadata>?
    let code = unsafe rd_kafka_metadata(client.pointer, 0, nil, &answer, cMilliseconds(timeoutMilliseconds))
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw client.state.explain(code, "connecting to Kafka") }
    if let answer = unsafe answer { unsafe rd_kafka_metadata_destroy(answer) }
    client.state.works()
  }

  /// Asks the brokers about one topic, or about all of them.
  ///
  /// - Throws: brokers that can't be reached. A topic's own error is in its entry.
  static func fetch(_ topic: String?, client: ClientHandle, timeoutMilliseconds: Int) throws(KafkaError)
    -> ClusterMetadata
  {
    let doing = topic.map { "fetching the metadata of topic \($0)" } ?? "fetching the metadata of all topics"
    var handle: OpaquePointer?
    if let topic {
      unsafe handle = rd_kafka_topic_new(client.pointer, topic, nil)
      if unsafe handle == nil { throw KafkaError(rd_kafka_last_error(), doing, remedy: "Check the topic's name") }
    }
    defer { if let handle = unsafe handle { unsafe rd_kafka_topic_destroy(handle) } }
    var answer: UnsafePointer<rd_kafka_metadata>?
    func ask(_ milliseconds: Int) -> rd_kafka_resp_err_t {
      unsafe rd_kafka_metadata(client.pointer, topic == nil ? 1 : 0, handle, &answer, cMilliseconds(milliseconds))
    }
    // librdkafka goes on trying to the end of the time, also when it was refused for what stays as it is.
    let first = min(timeoutMilliseconds, 1_000)
    var code = ask(first)
    if code != RD_KAFKA_RESP_ERR_NO_ERROR, first < timeoutMilliseconds, !client.state.isRefused {
      code = ask(timeoutMilliseconds - first)
    }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let answer = unsafe answer else {
      throw client.state.explain(code, doing)
    }
    defer { unsafe rd_kafka_metadata_destroy(answer) }
    client.state.works()
    return unsafe read(answer.pointee)
  }

  /// How many partitions a topic has.
  ///
  /// - Throws: the topic doesn't exist, by name; brokers that can't be reached.
  static func partitionCount(of topic: String, client: ClientHandle, timeoutMilliseconds: Int) throws(KafkaError) -> Int
  {
    let deadline = Deadline(milliseconds: timeoutMilliseconds)
    while true {
      let cluster = try fetch(topic, client: client, timeoutMilliseconds: Int(deadline.remaining))
      guard let found = cluster.topics.first(where: { $0.name == topic }) else {
        throw KafkaError(
          RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "topic \(topic)", remedy: "Create it first, or check its name")
      }
      guard let error = found.error else { return found.partitionCount }
      // A topic that was just created has no leader yet: the next answer may have one.
      guard error.isRetriable, !deadline.hasPassed else { throw error }
      usleep(50_000)
    }
  }

  private static func read(_ answer: rd_kafka_metadata) -> ClusterMetadata {
    let brokers = (0..<Int(unsafe answer.broker_cnt)).map { index -> String in
      let broker = unsafe answer.brokers[index]
      return unsafe (broker.host.map { unsafe String(cString: $0) } ?? "?") + ":\(unsafe broker.port)"
    }
    let topics = (0..<Int(unsafe answer.topic_cnt)).map { index -> TopicMetadata in
      let topic = unsafe answer.topics[index]
      let name = unsafe topic.topic.map { unsafe String(cString: $0) } ?? ""
      let partitionCount = Int(unsafe topic.partition_cnt)
      let replicas = (0..<partitionCount).map { Int(unsafe topic.partitions[$0].replica_cnt) }
      let code = unsafe topic.err
      let error =
        code == RD_KAFKA_RESP_ERR_NO_ERROR
        ? nil : KafkaError(code, "topic \(name)", remedy: DeliveryBook.remedy(code))
      return TopicMetadata(
        name: name, partitionCount: partitionCount, replicationFactor: replicas.min() ?? 0, error: error)
    }
    return ClusterMetadata(brokers: brokers, topics: topics)
  }
}
