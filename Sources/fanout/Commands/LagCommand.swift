internal import FanoutWorker
internal import Kafka
internal import SocialEvents

extension Command {
  static let lag = Command(
    name: "lag",
    summary: "print how far the workers are behind",
    details: """
      For each topic and partition: the end, what the group has committed, how many offsets lie between, and the age of the
      oldest record that is not applied. Partitions that hold nothing are left out, except with --json.
      """,
    options: [.brokers, .kafka, .kafkaFile, .kafkaPasswordFile, .topicPrefix, .group, .json]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let topics = try arguments.topics()
    let consumer = try Consumer(try arguments.kafka(), group: try arguments.string(.group), commitsStoredOffsets: false)
    defer { _ = consumer.close(timeoutMilliseconds: 2000) }
    let partitions = try consumer.partitions(of: topics.events + [topics.tasks])
    let committed = try consumer.committed(partitions)
    let marks = try consumer.watermarks(partitions)
    let rows = partitions.compactMap { partition in
      marks[partition].map {
        PartitionLag(partition: partition, low: $0.low, end: $0.high, committed: committed[partition])
      }
    }
    let times = try oldestTimes(rows.filter { $0.lag > 0 }, consumer)
    let isJSON = try arguments.flag(.json)
    let output = Output()
    let now = microsecondsSince1970() / 1000
    var table = [["topic", "partition", "end", "committed", "lag", "oldest unapplied"]]
    for row in rows where isJSON || row.end > 0 {
      let age = times[row.partition].map { max(0, now - $0) }
      if isJSON {
        var json = JSONLine().member("topic", row.partition.topic).member("partition", Int(row.partition.partition))
          .member("end", Int(row.end)).raw("committed", row.committed.map(String.init) ?? "null")
          .member("lag", Int(row.lag))
        if let age { json = json.raw("oldestUnappliedSeconds", fixed(Double(age) / 1000, 3)) }
        output.line(json.closed)
      } else {
        table.append([
          row.partition.topic, String(row.partition.partition), String(row.end), row.committed.map(String.init) ?? "-",
          String(row.lag), age.map { "\(fixed(Double($0) / 1000, 1)) s" } ?? "-",
        ])
      }
    }
    if !isJSON {
      for line in ListPrinter.aligned(table) { output.line(line) }
      output.line("lag in all: \(rows.reduce(Int64(0)) { $0 + $1.lag })")
    }
    return .done
  }

  /// When the first record was made that each partition's group has not committed.
  private static func oldestTimes(_ rows: [PartitionLag], _ consumer: Consumer) throws -> [TopicPartition: Int64] {
    var times: [TopicPartition: Int64] = [:]
    if rows.isEmpty { return times }
    try consumer.assign(rows.map { ($0.partition, .offset(max($0.low, $0.committed ?? $0.low))) })
    var open = Set(rows.map(\.partition))
    let deadline = Instant.after(milliseconds: 5000)
    while !open.isEmpty, Instant.now < deadline {
      try consumer.poll(max: 1000, timeoutMilliseconds: 200) { record in
        if open.remove(record.topicPartition) != nil { times[record.topicPartition] = record.timestampMilliseconds }
      }
      for partition in open where consumer.hasReachedEnd(partition) { open.remove(partition) }
    }
    return times
  }
}

private struct PartitionLag {
  let partition: TopicPartition
  let low: Int64
  let end: Int64
  let committed: Int64?

  var lag: Int64 { max(0, end - max(low, committed ?? low)) }
}
