internal import CRdKafka
internal import Synchronization

/// What librdkafka's callbacks reach through the opaque pointer: the part of a client that is shared with its threads.
final class ClientState: Sendable {
  /// The broker list as configured, for messages.
  let brokers: String
  let deliveries = DeliveryBook()
  /// Rebalances that librdkafka announced and the consumer's thread has not carried out yet.
  let rebalances = Mutex<[Rebalance]>([])

  private let secrets: [String]
  private let usesScram: Bool
  private let onEvent: (@Sendable (ClientEvent) -> Void)?
  private let memory = Mutex<Memory>(Memory())
  /// Whether ``memory`` holds anything: asked for every record, where a lock would show.
  private let isTroubled = Atomic<Bool>(false)

  private struct Memory {
    /// The last error of librdkafka's error callback, until something works again.
    var problem: KafkaError?
    /// The last failure in the log. It knows the reason earlier than the error callback, which waits to be polled. Not redacted:
    /// a secret may be part of the words by which it is known what it is about.
    var lastFailure: String?
    /// Why a certificate was refused the last time. It comes before the failure that it is the reason of, and may be asked for
    /// long after.
    var certificateFault: CertificateFault?
  }

  init(_ configuration: ClientConfiguration) {
    brokers = configuration.brokers
    onEvent = configuration.onEvent
    secrets = configuration.properties
      .filter { ClientConfiguration.isSecret(property: $0.name) && !$0.value.isEmpty }
      .map(\.value)
    usesScram = configuration.properties.contains {
      ($0.name == "sasl.mechanisms" || $0.name == "sasl.mechanism") && $0.value.uppercased().hasPrefix("SCRAM")
    }
  }

  /// The brokers were reached: what was wrong before no longer is.
  func works() {
    guard isTroubled.load(ordering: .relaxed) else { return }
    memory.withLock {
      isTroubled.store(false, ordering: .relaxed)
      $0.problem = nil
      $0.lastFailure = nil
    }
  }

  var problem: KafkaError? { memory.withLock { $0.problem } }

  /// Whether something failed since the brokers last answered.
  var isInTrouble: Bool { isTroubled.load(ordering: .relaxed) }

  /// Whether the last failure is one that no waiting mends: a login or a certificate that was refused.
  var isRefused: Bool {
    memory.withLock { $0.lastFailure }.map { Self.isLogin($0) || $0.contains(Self.certificateRefused) } ?? false
  }

  private static func isLogin(_ failure: String) -> Bool {
    // A connection that broke in the middle of a login was not refused, though librdkafka says so.
    if ["Local: Broker transport failure", "Local: Timed out"].contains(where: failure.contains) { return false }
    // Where tokens come from a service, its answer's HTTP status stands at the end.
    let isTokenRefused =
      failure.contains("retrieve OIDC token") && ["(400)", "(401)", "(403)"].contains(where: failure.hasSuffix)
    return isTokenRefused || failure.contains("SASL authentication error") || failure.contains("SASL handshake")
  }

  /// A failed call's error, with the reason that librdkafka only logged: "timed out" alone helps nobody.
  ///
  /// - Parameter namesLogin: whether a refused login or certificate takes the place of the code, as it is no use to try again
  ///   then. Not for records that were sent: their code says whether the outcome is known.
  func explain(
    _ code: rd_kafka_resp_err_t, _ doing: String, detail: String? = nil, remedy: String? = nil, namesLogin: Bool = true
  ) -> KafkaError {
    let known = memory.withLock { $0.lastFailure ?? $0.problem?.message }
    let plain = KafkaError(code, doing, detail: detail)
    guard plain.isConnectionFailure || plain.isTimeout || plain.isAuthenticationFailure else {
      return KafkaError(code, doing, detail: detail, remedy: remedy)
    }
    let reason = detail ?? KafkaError.text(of: code) ?? plain.name
    guard let known else {
      let what = plain.isTimeout ? "no answer in time from Kafka at" : "can't reach Kafka at"
      return KafkaError(code, doing, detail: "\(what) \(brokers): \(reason)", remedy: remedy ?? scramRemedy(reason))
    }
    let isLogin = Self.isLogin(known)
    let what = isLogin ? "can't log in to Kafka at" : "can't reach Kafka at"
    var named = code
    if namesLogin, isLogin { named = RD_KAFKA_RESP_ERR__AUTHENTICATION }
    if namesLogin, known.contains(Self.certificateRefused) { named = RD_KAFKA_RESP_ERR__SSL }
    return KafkaError(
      named, doing, detail: "\(what) \(brokers): \(reason) (\(redact(known)))", remedy: remedy ?? scramRemedy(known))
  }

  /// What to do about a login with SCRAM that failed, if librdkafka is too old for it.
  func scramRemedy(_ text: String) -> String? {
    guard usesScram || text.contains("SCRAM"), !Librdkafka.logsInWithScram else { return nil }
    let failed = ["authentic", "Authentic", "credential", "SASL"].contains { text.contains($0) }
    guard failed else { return nil }
    return
      "This librdkafka \(Librdkafka.version) can't log in with SCRAM to Kafka 3.7.2, 3.8.1, 3.9 or 4.x even when the "
      + "password is right: install librdkafka 2.6.1 or newer, or use SASL PLAIN or OAUTHBEARER over TLS"
  }

  private static let certificateRefused = "certificate verify failed"

  /// A text of librdkafka about a refused certificate, with the reason in place of its guess.
  private func namingCertificateFault(_ text: String) -> String {
    guard let refused = text.firstRange(of: Self.certificateRefused),
      let fault = memory.withLock({ $0.certificateFault })
    else { return text }
    return text[..<refused.upperBound] + ": " + fault.description
  }

  // MARK: What the callbacks call

  func refused(_ fault: CertificateFault) { memory.withLock { $0.certificateFault = fault } }

  func raised(_ code: rd_kafka_resp_err_t, reason: String, isFatal: Bool = false) {
    let raw = namingCertificateFault(reason)
    let text = redact(raw)
    let doing =
      switch code {
      case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__RESOLVE:
        "can't reach Kafka at \(brokers)"
      case RD_KAFKA_RESP_ERR__AUTHENTICATION: "can't log in to Kafka at \(brokers)"
      default: "Kafka at \(brokers)"
      }
    let remedy = code == RD_KAFKA_RESP_ERR__AUTHENTICATION ? scramRemedy(raw) : nil
    let error = KafkaError(code, doing, detail: text, remedy: remedy, isFatal: isFatal)
    // One lost connection is no problem (idle ones are closed by design, brokers restart); all of them down is.
    let isProblem = error.isAuthenticationFailure || error.isFatal || code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN
    memory.withLock { state in
      isTroubled.store(true, ordering: .relaxed)
      // "All brokers are down" follows the refused login that is the reason for it.
      let keeps = state.problem.map { $0.isAuthenticationFailure || $0.isFatal } ?? false
      if isProblem, !keeps || error.isFatal || error.isAuthenticationFailure {
        // How many brokers are down is no reason; the log has one.
        let reason = code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ? state.lastFailure.map(redact) : nil
        state.problem = KafkaError(
          code, doing, detail: text + (reason.map { " (\($0))" } ?? ""), remedy: remedy, isFatal: isFatal)
      }
    }
    report(
      ClientEvent(
        level: error.isFatal ? .critical : .error, facility: error.name, message: error.message, error: error))
  }

  func logged(level: Int32, facility: String, text: String) {
    var text = namingCertificateFault(text)
    // "[thrd:NAME]: " names librdkafka's thread.
    if text.hasPrefix("[thrd:"), let end = text.firstRange(of: "]: ") { text = String(text[end.upperBound...]) }
    // Producers and consumers share one list of properties: that a property is for the other kind isn't news.
    // And the embedded broker is too plain for a request that Kafka has known since 0.11.
    // And a connection that ends because its client is being destroyed hasn't failed.
    // And why a certificate was refused is told by the failure that follows.
    let isNoise =
      (facility == "CONFWARN" && text.contains("will be ignored by this")) || facility == "AUTOCREATE"
      || facility == "SSLCERTVRFY" || text.contains("Local: Broker handle destroyed")
    if !isNoise, level <= 4, ["FAIL", "ERROR", "OIDC"].contains(facility) {
      memory.withLock {
        isTroubled.store(true, ordering: .relaxed)
        $0.lastFailure = text
      }
    }
    guard onEvent != nil else { return }
    let severity: ClientEvent.Level =
      switch level {
      case ...2: .critical
      case 3: .error
      case 4: .warning
      case 5: .notice
      case 6: .info
      default: .debug
      }
    report(ClientEvent(level: isNoise ? .debug : severity, facility: facility, message: redact(text), error: nil))
  }

  func report(_ event: ClientEvent) { onEvent?(event) }

  func redact(_ text: String) -> String {
    var text = text
    for secret in secrets where text.contains(secret) { text = text.replacing(secret, with: "[redacted]") }
    return text
  }
}

/// A rebalance as librdkafka announced it.
struct Rebalance: Sendable {
  enum Kind: Sendable {
    case assign, revoke
    case failure(Int32)
  }
  let kind: Kind
  let partitions: [TopicPartition]
}
