internal import CRdKafka

/// A record being looked at. It is borrowed for the duration of the closure that receives it; nothing is copied until
/// ``owned()`` is asked for.
@safe public struct ConsumedRecord: ~Copyable {
  private let message: UnsafePointer<rd_kafka_message_t>
  /// The topic's index in ``Consumer/topicNames``.
  public let topicIndex: Int
  private let topic: String

  init(_ message: UnsafePointer<rd_kafka_message_t>, topicIndex: Int, topic: String) {
    unsafe self.message = message
    self.topicIndex = topicIndex
    self.topic = topic
  }

  public var partition: Int32 { unsafe message.pointee.partition }
  public var offset: Int64 { unsafe message.pointee.offset }
  /// The topic's name and the partition's number.
  public var topicPartition: TopicPartition { TopicPartition(topic: topic, partition: partition) }

  /// When the record was made or appended (the topic decides which), in milliseconds since 1970 UTC; nil when unknown.
  public var timestampMilliseconds: Int64? {
    var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    let time = unsafe rd_kafka_message_timestamp(message, &kind)
    return kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || time < 0 ? nil : time
  }

  /// Bytes of the key; zero for a null key too.
  public var keyCount: Int { unsafe message.pointee.key_len }
  /// Bytes of the value; zero for a tombstone too.
  public var valueCount: Int { unsafe message.pointee.len }
  /// Whether the value is null, which is not the same as empty.
  public var isTombstone: Bool { unsafe message.pointee.payload == nil }

  /// The key's bytes in place; nil for a null key.
  public func withKey<R, E: Error>(_ body: (Span<UInt8>?) throws(E) -> R) throws(E) -> R {
    try unsafe ConsumedRecord.withSpan(message.pointee.key, message.pointee.key_len, body)
  }

  /// The value's bytes in place; nil for a tombstone.
  public func withValue<R, E: Error>(_ body: (Span<UInt8>?) throws(E) -> R) throws(E) -> R {
    try unsafe ConsumedRecord.withSpan(message.pointee.payload, message.pointee.len, body)
  }

  /// Calls `body` with the name (UTF-8 as a rule, but any bytes) and value of each header, in order, in place.
  public func forEachHeader(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>?) -> Void) {
    var headers: OpaquePointer?
    // Parsed at the first call; NOENT when there are none, another error when they can't be parsed.
    guard unsafe rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR else { return }
    var index = 0
    var name: UnsafePointer<CChar>?
    var value: UnsafeRawPointer?
    var size = 0
    while unsafe rd_kafka_header_get_all(headers, index, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR {
      index += 1
      guard let name = unsafe name else { continue }
      var length = 0
      while unsafe name[length] != 0 { length += 1 }
      unsafe ConsumedRecord.withSpan(UnsafeRawPointer(name), length) { name in
        guard let name else { return }
        unsafe ConsumedRecord.withSpan(value, size) { body(name, $0) }
      }
    }
  }

  /// The last header of that name, in place. `body` gets nil when there is none and when its value is null.
  public func withHeader<R>(_ wanted: StaticString, _ body: (Span<UInt8>?) -> R) -> R {
    var headers: OpaquePointer?
    var value: UnsafeRawPointer?
    var size = 0
    guard wanted.hasPointerRepresentation,
      unsafe rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR,
      unsafe wanted.utf8Start.withMemoryRebound(
        to: CChar.self, capacity: wanted.utf8CodeUnitCount + 1,
        {
          // A literal's storage ends with a zero byte, as this call needs.
          unsafe rd_kafka_header_get_last(headers, $0, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR
        })
    else { return body(nil) }
    return unsafe ConsumedRecord.withSpan(value, size, body)
  }

  /// A copy to keep.
  public func owned() -> OwnedRecord {
    var headers: [Header] = []
    forEachHeader { name, value in
      headers.append(
        Header(name: String(decoding: Array(copying: name), as: UTF8.self), value: Array(copyingOptional: value)))
    }
    return OwnedRecord(
      partition: topicPartition, offset: offset, timestampMilliseconds: timestampMilliseconds,
      key: withKey { Array(copyingOptional: $0) }, value: withValue { Array(copyingOptional: $0) },
      headers: headers)
  }

  private static func withSpan<R, E: Error>(
    _ start: UnsafeRawPointer?, _ count: Int, _ body: (Span<UInt8>?) throws(E) -> R
  ) throws(E) -> R {
    guard let start = unsafe start else { return try body(nil) }
    let bytes = unsafe UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt8.self), count: count)
    return try unsafe body(bytes.span)
  }
}

extension Array where Element == UInt8 {
  /// The bytes of a span; nil for nil.
  init?(copyingOptional span: Span<UInt8>?) {
    guard let span else { return nil }
    self.init(copying: span)
  }

  /// The bytes of a span.
  public init(copying span: Span<UInt8>) {
    self = unsafe span.withUnsafeBufferPointer { unsafe Array($0) }
  }
}
