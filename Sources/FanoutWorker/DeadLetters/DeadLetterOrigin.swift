package import Kafka

/// Where a dead letter came from and why, as its headers say. They are data from the network: any of it may be absent or odd.
package struct DeadLetterOrigin: Sendable {
  /// Whose headers they are. Each kind is taken off again when a letter is sent back.
  package enum Convention: String, Sendable {
    /// Fanout's own, text.
    case fanout = "fanout.dlq."
    /// Kafka Connect's, text.
    case connect = "__connect.errors."
    /// Spring's, numbers in binary.
    case spring = "kafka_dlt-"
  }

  /// Nil when no header says anything.
  package private(set) var convention: Convention?
  /// A code, or the class of the exception.
  package private(set) var reason: String?
  package private(set) var message: String?
  package private(set) var topic: String?
  package private(set) var partition: Int64?
  package private(set) var offset: Int64?
  /// The original record's, in milliseconds since 1970.
  package private(set) var timestampMilliseconds: Int64?
  package private(set) var attempt: Int64?
  package private(set) var group: String?
  /// Of a stub: the bytes that the original's value has, and their digest.
  package private(set) var size: Int64?
  package private(set) var sha256: String?

  package init(_ headers: [Header]) {
    convention = [Convention.fanout, .connect, .spring].first { convention in
      headers.contains { $0.name.hasPrefix(convention.rawValue) }
    }
    let values = HeaderValues(headers: headers)
    switch convention {
    case .fanout:
      typealias Name = DeadLetter.HeaderName
      reason = values.text(Name.reason)
      message = values.text(Name.message)
      topic = values.text(Name.topic)
      partition = values.number(Name.partition)
      offset = values.number(Name.offset)
      timestampMilliseconds = values.number(Name.timestamp)
      attempt = values.number(Name.attempt)
      group = values.text(Name.group)
      size = values.number(Name.size)
      sha256 = values.text(Name.sha256)
    case .connect:
      reason = values.text("__connect.errors.exception.class.name")
      message = values.text("__connect.errors.exception.message")
      topic = values.text("__connect.errors.topic")
      partition = values.number("__connect.errors.partition")
      offset = values.number("__connect.errors.offset")
      group = values.text("__connect.errors.connector.name")
    case .spring:
      reason = values.text("kafka_dlt-exception-fqcn")
      message = values.text("kafka_dlt-exception-message")
      topic = values.text("kafka_dlt-original-topic")
      partition = values.bigEndian("kafka_dlt-original-partition")
      offset = values.bigEndian("kafka_dlt-original-offset")
      timestampMilliseconds = values.bigEndian("kafka_dlt-original-timestamp")
      group = values.text("kafka_dlt-original-consumer-group")
    case nil: break
    }
  }

  /// Whether only the headers are here: the worker's value did not fit into the dead letters.
  package var isStub: Bool { size != nil }

  /// The headers that the record had before it became a dead letter, in their order.
  func originalHeaders(_ headers: [Header]) -> [Header] {
    guard let convention else { return headers }
    return headers.filter { !$0.name.hasPrefix(convention.rawValue) }
  }
}

/// Looks headers up. Of several with one name the last counts: it was added last.
private struct HeaderValues {
  let headers: [Header]

  private func bytes(_ name: String) -> [UInt8]? { headers.last { $0.name == name }?.value }

  func text(_ name: String) -> String? {
    bytes(name).flatMap { $0.isEmpty ? nil : String(decoding: $0, as: UTF8.self) }
  }

  func number(_ name: String) -> Int64? { text(name).flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil } }

  /// Java's int or long.
  func bigEndian(_ name: String) -> Int64? {
    guard let bytes = bytes(name), bytes.count == 4 || bytes.count == 8 else { return nil }
    let number = bytes.reduce(Int64(0)) { $0 << 8 | Int64($1) }
    return number >= 0 && (bytes.count == 8 || number <= Int64(Int32.max)) ? number : nil
  }
}
