internal import CRdKafka

/// The librdkafka that the process runs on, which need not be the one that it was built with.
public enum Librdkafka {
  /// Such as 2.0.2.
  public static var version: String { unsafe rd_kafka_version_str().map { unsafe String(cString: $0) } ?? "?" }

  /// Whether Kafka 3.7.2, 3.8.1, 3.9 and 4.x let it in with SCRAM: before 2.6.1 it sends a nonce that these refuse (#4895).
  package static var logsInWithScram: Bool { rd_kafka_version() >= 0x0206_01ff }
}
