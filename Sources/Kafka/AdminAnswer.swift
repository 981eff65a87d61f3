internal import CRdKafka

/// One administrative request and the event that answers it.
@safe struct AdminAnswer: ~Copyable {
  private let event: OpaquePointer

  /// Sends the request that `send` makes and waits for the answer.
  init(
    _ client: ClientHandle, _ operation: rd_kafka_admin_op_t, _ expected: Int32, _ timeoutMilliseconds: Int,
    _ doing: String, _ send: (_ options: OpaquePointer?, _ queue: OpaquePointer) -> Void
  ) throws(KafkaError) {
    guard let queue = unsafe rd_kafka_queue_new(client.pointer) else {
      throw KafkaError(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, doing)
    }
    defer { unsafe rd_kafka_queue_destroy(queue) }
    let options = unsafe rd_kafka_AdminOptions_new(client.pointer, operation)
    defer { if let options = unsafe options { unsafe rd_kafka_AdminOptions_destroy(options) } }
    let timeout = Int32(clamping: max(timeoutMilliseconds, 1))
    unsafe _ = withCText { unsafe rd_kafka_AdminOptions_set_request_timeout(options, timeout, $0, $1) }
    unsafe send(options, queue)
    // librdkafka answers by its own timeout; the second on top is for that answer to arrive.
    guard let event = unsafe rd_kafka_queue_poll(queue, timeout + 1_000) else {
      throw client.state.explain(RD_KAFKA_RESP_ERR__TIMED_OUT, doing)
    }
    let code = unsafe rd_kafka_event_error(event)
    let text = unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR, unsafe rd_kafka_event_type(event) == expected else {
      unsafe rd_kafka_event_destroy(event)
      let failure = code == RD_KAFKA_RESP_ERR_NO_ERROR ? RD_KAFKA_RESP_ERR__FAIL : code
      throw client.state.explain(failure, doing, detail: text)
    }
    unsafe self.event = event
  }

  deinit { unsafe rd_kafka_event_destroy(event) }

  func createdTopics() -> [String: Admin.Outcome] {
    var count = 0
    guard let result = unsafe rd_kafka_event_CreateTopics_result(event),
      let topics = unsafe rd_kafka_CreateTopics_result_topics(result, &count)
    else { return [:] }
    var outcomes: [String: Admin.Outcome] = [:]
    for index in 0..<count {
      guard let topic = unsafe topics[index], let name = unsafe rd_kafka_topic_result_name(topic) else { continue }
      let text = unsafe String(cString: name)
      let code = unsafe rd_kafka_topic_result_error(topic)
      switch code {
      case RD_KAFKA_RESP_ERR_NO_ERROR: outcomes[text] = .created
      case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS: outcomes[text] = .existed
      default:
        let detail = unsafe rd_kafka_topic_result_error_string(topic).map { unsafe String(cString: $0) }
        outcomes[text] = .failed(KafkaError(code, "creating topic \(text)", detail: detail))
      }
    }
    return outcomes
  }

  func describedTopics() throws(KafkaError) -> [String: [String: String]] {
    var count = 0
    guard let result = unsafe rd_kafka_event_DescribeConfigs_result(event),
      let resources = unsafe rd_kafka_DescribeConfigs_result_resources(result, &count)
    else { return [:] }
    var topics: [String: [String: String]] = [:]
    for index in 0..<count {
      guard let resource = unsafe resources[index], let name = unsafe rd_kafka_ConfigResource_name(resource) else {
        continue
      }
      let topic = unsafe String(cString: name)
      let code = unsafe rd_kafka_ConfigResource_error(resource)
      guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
        let detail = unsafe rd_kafka_ConfigResource_error_string(resource).map { unsafe String(cString: $0) }
        throw KafkaError(
          code, "asking for the settings of topic \(topic)", detail: detail, remedy: DeliveryBook.remedy(code))
      }
      topics[topic] = unsafe AdminAnswer.settings(of: resource)
    }
    return topics
  }

  private static func settings(of resource: OpaquePointer) -> [String: String] {
    var count = 0
    guard let entries = unsafe rd_kafka_ConfigResource_configs(resource, &count) else { return [:] }
    var settings: [String: String] = [:]
    for index in 0..<count {
      guard let entry = unsafe entries[index], let name = unsafe rd_kafka_ConfigEntry_name(entry),
        let value = unsafe rd_kafka_ConfigEntry_value(entry), unsafe rd_kafka_ConfigEntry_is_sensitive(entry) == 0
      else { continue }
      unsafe settings[String(cString: name)] = String(cString: value)
    }
    return settings
  }
}
