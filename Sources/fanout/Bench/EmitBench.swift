internal import FanoutProducer
internal import Kafka
internal import SocialEvents

/// Emitting events until all are acknowledged.
enum EmitBench {
  static func run(_ context: BenchContext) throws {
    var data = BenchData(users: 20_000)
    let events = data.edgeEvents(context.events)
    var times: [Double] = []
    for _ in 0..<context.rounds {
      try context.withTopics { kafka, topics in
        let producer = try EventProducer(kafka, topics: topics, mode: .bulk)
        defer { producer.close(timeoutMilliseconds: 1000) }
        try producer.warm()
        times.append(
          try BenchContext.time {
            for event in events { try producer.send(event) }
            try producer.flush(timeoutMilliseconds: 120_000)
          })
      }
    }
    context.report(
      "emit",
      "\(grouped(Double(events.count) / BenchContext.median(times))) events/s acknowledged, \(context.brokerName)")
  }

  /// Emits events for other benchmarks to consume.
  static func emit(_ events: [Event], _ kafka: ClientConfiguration, _ topics: Topics) throws {
    let producer = try EventProducer(kafka, topics: topics, mode: .bulk)
    defer { producer.close(timeoutMilliseconds: 1000) }
    try producer.warm()
    for event in events { try producer.send(event) }
    try producer.flush(timeoutMilliseconds: 120_000)
  }
}
