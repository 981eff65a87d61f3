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
        "--topic-prefix", topics.prefix,
      ] + kafka.properties.flatMap { ["--kafka", "\($0.name)=\($0.value)"] }
    let log = try outputOfChild(words)
    // The worker's last line tells its peak.
    let parts = log.split(separator: "peak_memory_mb=")
    guard parts.count == 2, let peak = Int(parts[1].prefix(while: \.isNumber)) else {
      throw CommandFailure("the worker failed: \(log)")
    }
    return peak
  }

  /// Runs a process to its end and gives what it wrote to standard error.
  private static func outputOfChild(_ words: [String]) throws -> String {
    var ends: [Int32] = [0, 0]
    guard unsafe pipe(&ends) == 0 else { throw failure("can't make a pipe") }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
    unsafe posix_spawn_file_actions_addclose(&actions, ends[0])
    var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
    defer {
      while let argument = unsafe arguments.popLast() { unsafe free(argument) }
    }
    var pid = pid_t()
    let failed = unsafe posix_spawn(&pid, words[0], &actions, nil, &arguments, environ)
    close(ends[1])
    defer { close(ends[0]) }
    if failed != 0 { throw failure("can't start a worker", failed) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe read(ends[0], &chunk, chunk.count)
      if count > 0 {
        bytes.append(contentsOf: chunk.prefix(count))
      } else if count == 0 || errno != EINTR {
        break
      }
    }
    var status: Int32 = 0
    while unsafe waitpid(pid, &status, 0) < 0 {
      if errno != EINTR { throw failure("can't wait for the worker") }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func failure(_ what: String, _ code: Int32 = errno) -> CommandFailure {
    CommandFailure("\(what): \(unsafe String(cString: strerror(code)))")
  }
}
