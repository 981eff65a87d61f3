/// One partition of one topic.
public struct TopicPartition: Hashable, Sendable, CustomStringConvertible {
  public let topic: String
  public let partition: Int32

  public init(topic: String, partition: Int32) {
    self.topic = topic
    self.partition = partition
  }

  public var description: String { "\(topic)[\(partition)]" }
}

/// A record header. Names may repeat and keep their order; a null value differs from an empty one.
public struct Header: Sendable, Equatable {
  public let name: String
  public let value: [UInt8]?

  public init(name: String, value: [UInt8]?) {
    self.name = name
    self.value = value
  }

  /// A header whose value is text.
  public init(_ name: String, _ text: String) {
    self.init(name: name, value: Array(text.utf8))
  }
}

/// A record to send.
public struct ProducerRecord: Sendable {
  public var topic: String
  /// Chooses the partition the way Java's client does (murmur2); null spreads over all.
  public var key: [UInt8]?
  /// Null is a tombstone, which is not the same as an empty value.
  public var value: [UInt8]?
  public var headers: [Header]
  /// Milliseconds since 1970 UTC; nil is the time of sending.
  public var timestamp: Int64?
  /// An explicit partition; nil leaves the choice to the key.
  public var partition: Int32?

  public init(
    topic: String, key: [UInt8]? = nil, value: [UInt8]?, headers: [Header] = [], timestamp: Int64? = nil,
    partition: Int32? = nil
  ) {
    self.topic = topic
    self.key = key
    self.value = value
    self.headers = headers
    self.timestamp = timestamp
    self.partition = partition
  }
}

/// Where an acknowledged record went.
public struct Delivery: Sendable {
  public let partition: TopicPartition
  /// The offset the broker gave it; nil when the broker had stored it before a retry (idempotence) and didn't say where.
  public let offset: Int64?
}

/// A consumed record whose bytes belong to it, to keep beyond the poll: for dead letters and tasks.
public struct OwnedRecord: Sendable {
  public var partition: TopicPartition
  public var offset: Int64
  /// Milliseconds since 1970 UTC; nil when the record has none.
  public var timestampMilliseconds: Int64?
  public var key: [UInt8]?
  public var value: [UInt8]?
  public var headers: [Header]

  public init(
    partition: TopicPartition, offset: Int64, timestampMilliseconds: Int64?, key: [UInt8]?, value: [UInt8]?,
    headers: [Header]
  ) {
    self.partition = partition
    self.offset = offset
    self.timestampMilliseconds = timestampMilliseconds
    self.key = key
    self.value = value
    self.headers = headers
  }

  /// About what it takes in memory.
  public var byteCount: Int {
    headers.reduce((value?.count ?? 0) + (key?.count ?? 0)) {
      $0 + $1.name.utf8.count + ($1.value?.count ?? 0) + 64
    }
  }
}

/// What a group has committed of a partition.
public struct CommittedOffset: Sendable, Equatable {
  /// The offset of the next record wanted.
  public var next: Int64
  /// Text that the brokers keep with it (Kafka's "metadata"), 4,096 bytes at most unless they are set up otherwise.
  public var note: String

  public init(next: Int64, note: String = "") {
    self.next = next
    self.note = note
  }
}
