internal import CRdKafka
internal import Dispatch
internal import Synchronization

/// Owns one `rd_kafka_t` and the state its callbacks use.
///
/// `rd_kafka_t` may be used from any thread ("Threads and callbacks", librdkafka's INTRODUCTION.md), so the pointer is
/// shared freely; who may *destroy* it, and when, is for the owner to arrange.
@safe final class ClientHandle: Sendable {
  enum Kind { case producer, consumer }

  nonisolated(unsafe) let pointer: OpaquePointer
  let state: ClientState

  /// - Parameters:
  ///   - defaults: what this module sets unless the user's properties say otherwise.
  ///   - required: what this module can't work without; another value is refused with the reason.
  init(
    _ kind: Kind, _ configuration: ClientConfiguration, defaults: [(String, String)] = [],
    required: [(name: String, value: String, reason: String)] = []
  ) throws(KafkaError) {
    let state = ClientState(configuration)
    guard let conf = unsafe rd_kafka_conf_new() else {
      throw KafkaError(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "creating a Kafka client's configuration")
    }
    do throws(KafkaError) {
      try unsafe ClientHandle.apply(configuration, kind: kind, defaults: defaults, required: required, to: conf)
    } catch {
      unsafe rd_kafka_conf_destroy(conf)
      throw error
    }
    unsafe ClientHandle.installCallbacks(on: conf, kind: kind, state: state)
    let (created, text) = unsafe withCText {
      unsafe rd_kafka_new(kind == .producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, $0, $1)
    }
    guard let pointer = unsafe created else {
      // The configuration stays the caller's when rd_kafka_new fails.
      let code = rd_kafka_last_error()
      unsafe rd_kafka_conf_destroy(conf)
      unsafe Unmanaged.passUnretained(state).release()
      throw KafkaError(code, "creating a Kafka client for \(configuration.brokers)", detail: state.redact(text))
    }
    unsafe self.pointer = pointer
    self.state = state
  }

  /// Destroys the client on a thread of its own, because librdkafka may block there for ever (#4187, #4724).
  ///
  /// Every queue, message and list of the client must be gone. False when it did not finish by the deadline: the
  /// client, and the state its callbacks use, are then left behind for the process to end with.
  ///
  /// - Parameter flags: `RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE` when closing in order has been tried already.
  func destroy(within timeout: DispatchTimeInterval, flags: Int32 = 0) -> Bool {
    let done = DispatchSemaphore(value: 0)
    let started = ServiceThread.run {
      unsafe rd_kafka_destroy_flags(self.pointer, flags)
      unsafe Unmanaged.passUnretained(self.state).release()
      done.signal()
    }
    return started && done.wait(timeout: .now() + timeout) == .success
  }

  /// The error that made the client unusable, if there is one.
  var fatalError: KafkaError? {
    let (code, text) = unsafe withCText { unsafe rd_kafka_fatal_error(pointer, $0, $1) }
    guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
    return KafkaError(code, "the Kafka client has failed for good", detail: state.redact(text), isFatal: true)
  }

  /// Makes the client believe that it failed for good, as an idempotent producer can (#4438).
  func injectFatalError() {
    unsafe _ = rd_kafka_test_fatal_error(pointer, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "injected by a test")
  }

  // MARK: Configuration

  private static func apply(
    _ configuration: ClientConfiguration, kind: Kind, defaults: [(String, String)],
    required: [(name: String, value: String, reason: String)], to conf: OpaquePointer
  ) throws(KafkaError) {
    let shared = [
      ("bootstrap.servers", configuration.brokers), ("client.id", configuration.clientID),
      // At its default of 10 s a four-second outage of a broker took fourteen.
      ("reconnect.backoff.max.ms", "2000"), ("socket.keepalive.enable", "true"), ("socket.nagle.disable", "true"),
      // Brokers close idle connections by design; that is not worth a line.
      ("log.connection.close", "false"),
    ]
    let fixed = required + [("log.queue", "false", "log lines go to ClientConfiguration.onEvent")]
    for (name, value) in shared + defaults { try unsafe set(name, value, on: conf) }
    for (name, value, _) in fixed { try unsafe set(name, value, on: conf) }
    for (name, value) in configuration.properties {
      if let rule = fixed.first(where: { $0.name == name }), rule.value != value {
        throw KafkaError(
          RD_KAFKA_RESP_ERR__INVALID_ARG, "Kafka property \(name)",
          detail: "it must be \"\(rule.value)\" here: \(rule.reason)", remedy: "Leave it out")
      }
      try unsafe set(name, value, on: conf)
    }
    if !Librdkafka.renewsUnsecuredTokens { try unsafe keepUnsecuredToken(configuration, on: conf) }
    let brokers = unsafe get("bootstrap.servers", from: conf) ?? ""
    if brokers.isEmpty, unsafe (get("test.mock.num.brokers", from: conf) ?? "0") == "0" {
      throw KafkaError(
        RD_KAFKA_RESP_ERR__INVALID_ARG, "Kafka brokers", detail: "none given",
        remedy: "Give host:port, such as localhost:9092")
    }
  }

  /// Gives a token that can't be renewed ten years to live.
  private static func keepUnsecuredToken(
    _ configuration: ClientConfiguration, on conf: OpaquePointer
  ) throws(KafkaError) {
    guard unsafe get("enable.sasl.oauthbearer.unsecure.jwt", from: conf) == "true" else { return }
    let name = "sasl.oauthbearer.config"
    let settings = configuration.properties.last { $0.name == name }?.value ?? ""
    if settings.contains("lifeSeconds") {
      throw KafkaError(
        RD_KAFKA_RESP_ERR__INVALID_ARG, "Kafka property \(name)",
        detail: "this librdkafka \(Librdkafka.version) ends the process when it renews an unsecured token",
        remedy: "Leave lifeSeconds out, or install librdkafka 2.2 or newer")
    }
    try unsafe set(name, settings + " lifeSeconds=315360000", on: conf)
  }

  private static func set(_ name: String, _ value: String, on conf: OpaquePointer) throws(KafkaError) {
    let (result, text) = unsafe withCText { unsafe rd_kafka_conf_set(conf, name, value, $0, $1) }
    switch result {
    case RD_KAFKA_CONF_OK: return
    case RD_KAFKA_CONF_UNKNOWN:
      throw KafkaError(
        RD_KAFKA_RESP_ERR__INVALID_ARG, "Kafka property \"\(name)\"", detail: "librdkafka has no such property",
        remedy: "Its CONFIGURATION.md lists all of them")
    default:
      // librdkafka's text quotes the value.
      let detail = ClientConfiguration.isSecret(property: name) ? "its value is not acceptable" : text
      throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, "Kafka property \"\(name)\"", detail: detail)
    }
  }

  private static func get(_ name: String, from conf: OpaquePointer) -> String? {
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer -> String? in
      var size = buffer.count
      guard unsafe rd_kafka_conf_get(conf, name, buffer.baseAddress, &size) == RD_KAFKA_CONF_OK, size > 0,
        let start = buffer.baseAddress
      else { return nil }
      return unsafe String(cString: start)
    }
  }

  /// A setting as it is in force, or nil when it has none (or more than four thousand characters).
  func setting(_ name: String) -> String? {
    guard let conf = unsafe rd_kafka_conf(pointer) else { return nil }
    if let value = unsafe ClientHandle.get(name, from: conf) { return value }
    return nil
  }

  // MARK: Callbacks

  private static func installCallbacks(on conf: OpaquePointer, kind: Kind, state: ClientState) {
    // Balanced when the client has been destroyed: its callbacks run until then.
    unsafe rd_kafka_conf_set_opaque(conf, Unmanaged.passRetained(state).toOpaque())
    unsafe rd_kafka_conf_set_log_cb(conf) { client, level, facility, text in
      guard let client = unsafe client, let opaque = unsafe rd_kafka_opaque(client) else { return }
      let state = unsafe Unmanaged<ClientState>.fromOpaque(opaque).takeUnretainedValue()
      unsafe state.logged(
        level: level, facility: facility.map { unsafe String(cString: $0) } ?? "",
        text: text.map { unsafe String(cString: $0) } ?? "")
    }
    unsafe rd_kafka_conf_set_error_cb(conf) { client, code, reason, opaque in
      guard let opaque = unsafe opaque else { return }
      let state = unsafe Unmanaged<ClientState>.fromOpaque(opaque).takeUnretainedValue()
      let code = rd_kafka_resp_err_t(rawValue: code)
      let reason = unsafe reason.map { unsafe String(cString: $0) } ?? ""
      guard code == RD_KAFKA_RESP_ERR__FATAL, let client = unsafe client else {
        return state.raised(code, reason: reason)
      }
      // The code says only "fatal"; the one behind it is asked for ("Fatal errors", INTRODUCTION.md).
      let (fatal, text) = unsafe withCText { unsafe rd_kafka_fatal_error(client, $0, $1) }
      state.raised(fatal, reason: text.isEmpty ? reason : text, isFatal: true)
    }
    // With this callback librdkafka complains even of certificates that it was told not to verify.
    let usesTLS = unsafe get("security.protocol", from: conf)?.contains("ssl") ?? false
    if usesTLS, unsafe get("enable.ssl.certificate.verification", from: conf) != "false" {
      unsafe ClientState.observeCertificates(on: conf)
    }
    switch kind {
    case .producer:
      unsafe rd_kafka_conf_set_dr_msg_cb(conf) { _, message, opaque in
        guard let opaque = unsafe opaque, let message = unsafe message else { return }
        let state = unsafe Unmanaged<ClientState>.fromOpaque(opaque).takeUnretainedValue()
        unsafe state.deliveries.record(message, state: state)
      }
    case .consumer:
      unsafe rd_kafka_conf_set_rebalance_cb(conf) { client, code, partitions, opaque in
        guard let client = unsafe client, let opaque = unsafe opaque else { return }
        let state = unsafe Unmanaged<ClientState>.fromOpaque(opaque).takeUnretainedValue()
        let kind: Rebalance.Kind =
          switch code {
          case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS: .assign
          case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: .revoke
          default: .failure(code.rawValue)
          }
        let names = unsafe PartitionList.names(in: partitions)
        state.rebalances.withLock { $0.append(Rebalance(kind: kind, partitions: names)) }
        // Only noted here and carried out when the batch call has returned; the yield makes it return at once.
        guard let queue = unsafe rd_kafka_queue_get_consumer(client) else { return }
        unsafe rd_kafka_queue_yield(queue)
        unsafe rd_kafka_queue_destroy(queue)
      }
    }
  }
}

/// Calls a function that writes a C string into a buffer, and returns its result and that text.
func withCText<R>(_ body: (UnsafeMutablePointer<CChar>?, Int) -> R) -> (R, String) {
  unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1024) { buffer in
    unsafe buffer.initialize(repeating: 0)
    let result = unsafe body(buffer.baseAddress, buffer.count)
    return (result, unsafe buffer.baseAddress.map { unsafe String(cString: $0) } ?? "")
  }
}
