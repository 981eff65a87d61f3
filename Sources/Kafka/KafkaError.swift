internal import CRdKafka

/// What went wrong in a Kafka client.
///
/// The code is librdkafka's `rd_kafka_resp_err_t`: zero and above are answers of a broker, below zero are the
/// client's own (their names begin with an underscore). New codes may appear with every version of librdkafka, so
/// ask for the property that matters (``isRetriable``, ``isMessageTooLarge``, …) rather than listing codes.
///
/// The message says what was being done, what librdkafka answered and, where there is one, the remedy. It never holds
/// the value of a secret property such as `sasl.password`.
public struct KafkaError: Error, Sendable, CustomStringConvertible {
  /// librdkafka's `rd_kafka_resp_err_t`.
  public let code: Int32
  /// The code's name, such as `_ALL_BROKERS_DOWN`.
  public let name: String
  /// What was being done, librdkafka's text, and the remedy.
  public let message: String
  /// The same call may succeed later without anybody changing anything: brokers away, leader moving, queue full.
  public let isRetriable: Bool
  /// The client can't go on: close it, create a new one, and send again whatever has no delivery report.
  public let isFatal: Bool

  public var description: String { "\(message) [\(name)]" }

  init(
    _ code: rd_kafka_resp_err_t, _ doing: String, detail: String? = nil, remedy: String? = nil, isFatal: Bool = false
  ) {
    self.code = code.rawValue
    self.name = KafkaError.name(of: code)
    var message = doing
    if let text = detail ?? KafkaError.text(of: code), !text.isEmpty { message += ": \(text)" }
    if let remedy { message += ". \(remedy)" }
    self.message = message
    self.isFatal = isFatal || code == RD_KAFKA_RESP_ERR__FATAL || code == RD_KAFKA_RESP_ERR__FENCED
    self.isRetriable = !self.isFatal && KafkaError.retriable.contains(code.rawValue)
  }

  static func name(of code: rd_kafka_resp_err_t) -> String {
    guard let name = unsafe rd_kafka_err2name(code) else { return "\(code.rawValue)" }
    return unsafe String(cString: name)
  }

  static func text(of code: rd_kafka_resp_err_t) -> String? {
    guard let text = unsafe rd_kafka_err2str(code) else { return nil }
    return unsafe String(cString: text)
  }

  /// Brokers' codes by their number in the protocol, the client's own by librdkafka's. An unknown topic is not here
  /// although Java's client retries it: a topic somebody forgot to create doesn't appear by waiting, it must be reported.
  private static let retriable: Set<Int32> = Set(
    [
      RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__RESOLVE,
      RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE,
      RD_KAFKA_RESP_ERR__QUEUE_FULL, RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR__IN_PROGRESS,
      RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS,
      RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED, RD_KAFKA_RESP_ERR__RETRY, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
      RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
      RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
      RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
      RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
      RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, RD_KAFKA_RESP_ERR_NOT_CONTROLLER,
      RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH,
      RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH, RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
    ].map(\.rawValue))
}

extension KafkaError {
  /// No broker could be reached, by name, by network or because all of them are down.
  public var isConnectionFailure: Bool {
    has(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) || has(RD_KAFKA_RESP_ERR__TRANSPORT) || has(RD_KAFKA_RESP_ERR__RESOLVE)
  }
  /// The brokers were reached and refused the login, or TLS failed: waiting doesn't help, configuration does.
  public var isAuthenticationFailure: Bool {
    has(RD_KAFKA_RESP_ERR__AUTHENTICATION) || has(RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED)
      || has(RD_KAFKA_RESP_ERR__SSL) || has(RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM)
  }
  /// The record is larger than the client or the broker accepts.
  public var isMessageTooLarge: Bool {
    has(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) || has(RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE)
      || has(RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE)
  }
  /// The group refuses this member whatever it tries: its session timeout, its name or its assignment strategy.
  public var isGroupConfigurationFault: Bool {
    has(RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT) || has(RD_KAFKA_RESP_ERR_INVALID_GROUP_ID)
      || has(RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL)
  }
  /// Another member of the group has come with the same `group.instance.id`.
  public var isFencedMember: Bool { has(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID) }
  /// The topic or partition doesn't exist.
  public var isUnknownTopic: Bool {
    has(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) || has(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)
      || has(RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
  }
  /// The deadline passed: the outcome is unknown.
  public var isTimeout: Bool {
    has(RD_KAFKA_RESP_ERR__TIMED_OUT) || has(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
      || has(RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT)
  }
  /// A property, a topic name or an argument is not acceptable; the message names it.
  public var isInvalidArgument: Bool { has(RD_KAFKA_RESP_ERR__INVALID_ARG) }
  /// The record was kept back because the client was closed before it could be sent.
  public var isPurged: Bool { has(RD_KAFKA_RESP_ERR__PURGE_QUEUE) || has(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT) }
  /// The client was closed.
  public var isClosed: Bool { has(RD_KAFKA_RESP_ERR__DESTROY) }

  private func has(_ other: rd_kafka_resp_err_t) -> Bool { code == other.rawValue }

  static func closed(_ what: String) -> KafkaError {
    KafkaError(RD_KAFKA_RESP_ERR__DESTROY, what, detail: "the client is closed")
  }

  /// Takes over librdkafka's error object: reads it and destroys it.
  static func consuming(_ error: OpaquePointer, _ doing: String, remedy: String? = nil) -> KafkaError {
    defer { unsafe rd_kafka_error_destroy(error) }
    let detail = unsafe rd_kafka_error_string(error).map { unsafe String(cString: $0) }
    return unsafe KafkaError(
      rd_kafka_error_code(error), doing, detail: detail, remedy: remedy, isFatal: rd_kafka_error_is_fatal(error) != 0)
  }
}
