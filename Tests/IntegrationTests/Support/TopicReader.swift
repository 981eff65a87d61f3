import Kafka

extension Deployment {
  /// All records of topics, as they lie in the log.
  func records(of names: [String]) throws -> [OwnedRecord] {
    let consumer = try Consumer(client, group: group + "-reader", commitsStoredOffsets: false)
    defer { consumer.close(timeoutMilliseconds: 2000) }
    var ends: [TopicPartition: Int64] = [:]
    for partition in try consumer.partitions(of: names) {
      let (low, high) = try consumer.watermarks(partition)
      if high > low { ends[partition] = high }
    }
    try consumer.assign(ends.keys.map { ($0, .beginning) })
    var records: [OwnedRecord] = []
    let deadline = ContinuousClock.now + .seconds(Patience.seconds)
    while !ends.isEmpty {
      try consumer.poll(max: 1000, timeoutMilliseconds: 100) { records.append($0.owned()) }
      for (partition, end) in ends where (consumer.position(partition) ?? 0) >= end { ends[partition] = nil }
      if ContinuousClock.now > deadline { throw TestFailure("can't read \(names) to the end") }
    }
    return records
  }

  /// Sends records and returns when they are acknowledged.
  func send(_ records: [ProducerRecord]) throws {
    let producer = try Producer(client)
    defer { producer.close(timeoutMilliseconds: 1000) }
    try producer.sendAndWait(records, timeoutMilliseconds: 60_000)
  }
}

extension OwnedRecord {
  /// The text of the last header of that name.
  func header(_ name: String) -> String? {
    headers.last { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
  }
}
