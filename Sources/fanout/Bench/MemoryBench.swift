internal import Kafka
internal import SocialEvents

/// The peak resident size of worker processes: it must grow neither with the backlog nor with a post's followers.
enum MemoryBench {
  static func run(_ context: BenchContext) throws {
    for count in [5_000, 40_000] {
      var data = BenchData(users: max(100, count / 5))
      let events = data.history(count)
      let peak = try peakOfWorker(context, events)
      context.report("memory", "\(peak) MB at most while a worker catches up on \(grouped(count)) events")
    }
    for followers in [20_000, 200_000] {
      var data = BenchData(users: followers + 1)
      let author = data.users[followers]
      var events: [Event] = []
      for user in data.users.dropLast() {
        events.append(data.event(.present(try .follow(actor: user, target: author), silent: true, extra: nil)))
      }
      let post = Post(author: author, id: try PostID("to everybody"))
      let peak = try peakOfWorker(context, events, then: [data.event(.published(post, publishedAt: nil))])
      context.report("memory", "\(peak) MB at most while a post is fanned out to \(grouped(followers)) followers")
    }
  }

  /// Emits events, lets worker processes catch up, one for each lot, and gives the greatest peak resident size in MB.
  private static func peakOfWorker(_ context: BenchContext, _ lot: [Event], then more: [Event] = []) throws -> Int {
    try context.withTopics(partitions: 24) { kafka, topics in
      try context.withStore { store in
        var peak = 0
        for events in [lot, more] where !events.isEmpty {
          try EmitBench.emit(events, kafka, topics)
          let worker = try WorkerProcess(context, kafka, topics, store: store, ["--until-caught-up"])
          peak = max(peak, try worker.finish().count("peak_memory_mb"))
        }
        return peak
      }
    }
  }
}
