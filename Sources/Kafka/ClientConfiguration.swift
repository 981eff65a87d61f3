/// How a client reaches Kafka, and which of librdkafka's settings it overrides.
///
/// Any property of librdkafka's `CONFIGURATION.md` may be passed through; it wins over this module's default. A property
/// that doesn't exist or doesn't take the value is reported by name when the client is created.
public struct ClientConfiguration: Sendable {
  /// `host:port`, several separated by commas.
  public var brokers: String
  /// Shown in the brokers' logs and quotas; make it unique to the process.
  public var clientID: String
  /// librdkafka properties, applied in order after this module's defaults.
  ///
  /// One list may serve producers and consumers: a property that only concerns the other kind is ignored.
  public var properties: [(name: String, value: String)]
  /// Receives librdkafka's log lines and errors; nothing is written to standard error whether it is set or not.
  ///
  /// Called from librdkafka's threads, and from inside ``Consumer/poll(max:timeoutMilliseconds:lingerMilliseconds:_:)``:
  /// it must be quick, must not block and must not call the client.
  public var onEvent: (@Sendable (ClientEvent) -> Void)?

  public init(
    brokers: String, clientID: String = "fanout", properties: [(name: String, value: String)] = [],
    onEvent: (@Sendable (ClientEvent) -> Void)? = nil
  ) {
    self.brokers = brokers
    self.clientID = clientID
    self.properties = properties
    self.onEvent = onEvent
  }

  /// Whether a property's value must never be shown.
  public static func isSecret(property name: String) -> Bool {
    let parts = ["password", "secret", "ssl.key.pem", "sasl.oauthbearer.config", "token", "private"]
    return parts.contains { name.contains($0) } && name != "sasl.oauthbearer.token.endpoint.url"
  }
}

/// Something librdkafka wanted an operator to know.
public struct ClientEvent: Sendable, CustomStringConvertible {
  /// Severity, least severe first.
  public enum Level: Int, Sendable, Comparable {
    case debug, info, notice, warning, error, critical

    public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
  }

  public let level: Level
  /// librdkafka's short name for the kind of event, such as `FAIL`, or the error's name.
  public let facility: String
  public let message: String
  /// Set when the event is an error rather than a log line.
  public let error: KafkaError?

  public var description: String { "\(level) \(facility): \(message)" }
}
