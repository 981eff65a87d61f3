internal import FanoutWorker
internal import SocialEvents

/// A mixed history from Kafka to SQLite, with all views; then again, when all is known.
enum HistoryBench {
  static func run(_ context: BenchContext) throws {
    var data = BenchData(users: max(100, context.events / 5))
    let events = data.history(context.events)
    try context.withTopics { kafka, topics in
      try EmitBench.emit(events, kafka, topics)
      var first: [Double] = []
      var again: [Double] = []
      var deliveries = 0
      for _ in 0..<context.rounds {
        let path = context.newPath()
        let progress = try EdgeBench.replay(kafka, topics, into: path)
        first.append(progress.seconds)
        deliveries = progress.counts.deliveries
        again.append(try EdgeBench.replay(kafka, topics, into: path).seconds)
      }
      let a = BenchContext.median(first)
      context.report(
        "history",
        "\(grouped(Double(events.count) / a)) events/s end to end with \(grouped(Double(deliveries) / a)) deliveries/s, "
          + "\(context.brokerName) to SQLite; replayed into the same store "
          + "\(grouped(Double(events.count) / BenchContext.median(again))) events/s")
    }
  }
}
