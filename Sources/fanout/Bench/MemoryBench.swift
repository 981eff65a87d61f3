internal import FanoutProducer
private import Glibc
internal import Kafka
internal import SocialEvents

/// The peak resident size of worker processes: it must grow neither with the backlog nor with a post's followers.
enum MemoryBench {
  static func run(_ context: BenchContext) throws {
    for count in [5_000, 40_000] {
      var data = BenchData(users: max(100, count / 5))
      let events = data.history(count)
      let peak = try peakOfWorker(context, events)
      context.report("memory", "\(megabytes(peak)) MB at most while a worker catches up on \(grouped(count)) events")
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
      context.report("memory", "\(megabytes(peak)) MB at most while a post is fanned out to \(grouped(followers)) followers")
    }
  }

  private static func megabytes(_ kilobytes: Int) -> String { fixed(Double(kilobytes) / 1024, 0) }

  /// Emits events, lets worker processes catch up, one for each lot, and gives the last one's peak resident size in KiB.
  private static func peakOfWorker(_ context: BenchContext, _ lots: [Event], then more: [Event] = []) throws -> Int {
    try context.withTopics(partitions: 24) { kafka, topics in
      let path = context.newPath()
      try EmitBench.emit(lots, kafka, topics)
      let first = try worker(kafka, topics, path)
      if more.isEmpty { return first }
      try EmitBench.emit(more, kafka, topics)
      return max(first, try worker(kafka, topics, path))
    }
  }

  private static func worker(_ kafka: ClientConfiguration, _ topics: Topics, _ path: String) throws -> Int {
    let words =
      [
        "/proc/self/exe", "worker", "--until-caught-up", "--store", "sqlite:\(path)", "--brokers", kafka.brokers,
        "--topic-prefix", topics.prefix, "--log-level", "warning",
      ] + kafka.properties.flatMap { ["--kafka", "\($0.name)=\($0.value)"] }
    var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe arguments.forEach { unsafe free($0) } }
    var pid = pid_t()
    let failed = unsafe posix_spawn(&pid, "/proc/self/exe", nil, nil, &arguments, environ)
    if failed != 0 { throw CommandFailure("can't start a worker: \(unsafe String(cString: strerror(failed)))") }
    var status: Int32 = 0
    var usage = rusage()
    while unsafe wait4(pid, &status, 0, &usage) < 0 {
      if errno != EINTR { throw CommandFailure("can't wait for the worker: \(unsafe String(cString: strerror(errno)))") }
    }
    if status != 0 { throw CommandFailure("the worker failed") }
    return usage.ru_maxrss
  }
}
