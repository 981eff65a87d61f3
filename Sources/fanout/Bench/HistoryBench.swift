internal import FanoutWorker
internal import SocialEvents

/// A mixed history from Kafka to the store, with all views.
enum HistoryBench {
  static func run(_ context: BenchContext) throws {
    let events = try context.history()
    if let postgres = context.postgres {
      try byWorker(context, events, postgres)
    } else {
      try byReplay(context, events)
    }
  }

  /// To SQLite; then again, when all is known.
  private static func byReplay(_ context: BenchContext, _ events: [Event]) throws {
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

  /// By a real worker, whose slices go through Kafka: so each round has topics of its own.
  ///
  /// Its time is that between two lines of its log: that partitions were assigned, a moment before the first record comes, and
  /// that the last batch was applied, just after its last commit.
  private static func byWorker(_ context: BenchContext, _ events: [Event], _ postgres: String) throws {
    var times: [Double] = []
    var cpu: [Double] = []
    var deliveries = 0
    for _ in 0..<context.rounds {
      try context.withTopics { kafka, topics in
        try context.withSchema(in: postgres) { schema in
          try EmitBench.emit(events, kafka, topics)
          let worker = try WorkerProcess(
            context, kafka, topics, store: schema.address, ["--until-caught-up", "--log-level", "debug"])
          let outcome = try worker.finish()
          guard try outcome.count("events") == events.count else {
            throw CommandFailure("the worker applied other than \(events.count) events: \(outcome.log.suffix(2000))")
          }
          times.append(try outcome.seconds(from: " assigned ", to: " applied "))
          cpu.append(outcome.cpuSeconds)
          deliveries = try outcome.count("deliveries")
        }
      }
    }
    let a = BenchContext.median(times)
    // A plan that the server chose badly shows as a round that takes several times as long.
    let span = "\(fixed(times.min() ?? 0, 2)) to \(fixed(times.max() ?? 0, 2))"
    context.report(
      "history",
      "\(grouped(Double(events.count) / a)) events/s end to end with \(grouped(Double(deliveries) / a)) deliveries/s "
        + "(\(grouped(events.count)) and \(grouped(deliveries)) in \(fixed(a, 2)) s; rounds took \(span)), \(context.brokerName) to PostgreSQL, "
        + "one worker process, which took \(fixed(BenchContext.median(cpu), 2)) s of processor time")
  }
}
