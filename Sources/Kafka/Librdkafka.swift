internal import CRdKafka

/// The librdkafka that the process runs on, which need not be the one that it was built with.
public enum Librdkafka {
  /// Such as 2.0.2.
  public static var version: String { unsafe rd_kafka_version_str().map { unsafe String(cString: $0) } ?? "?" }

  /// Whether Kafka 3.7.2, 3.8.1, 3.9 and 4.x let it in with SCRAM: before 2.6.1 it sends a nonce that these refuse (#4895).
  package static var logsInWithScram: Bool { rd_kafka_version() >= 0x0206_01ff }

  /// Whether it can renew an unsecured token of its own making: before 2.2 that ends the process by a segmentation fault (measured
  /// on 2.0.2, when four fifths of the token's hour had passed).
  package static var renewsUnsecuredTokens: Bool { rd_kafka_version() >= 0x0202_00ff }
}
