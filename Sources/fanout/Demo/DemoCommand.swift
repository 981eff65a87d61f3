internal import FanoutProducer
internal import FanoutStore
internal import FanoutWorker
private import Glibc
internal import Kafka
internal import SQLiteStore
internal import SocialEvents

extension Command {
  static let demo = Command(
    name: "demo",
    summary: "show the whole path on a small made-up network, in a few seconds",
    details: """
      Starts an embedded broker and a worker on a SQLite store in a temporary folder, emits events, shows what Ann sees, takes
      some of it back, and replays everything. Needs nothing and leaves nothing behind.
      """,
    options: [.logLevel]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let asked = try arguments.log().level
    Signals.ignoreBrokenPipes()
    let folder = try TemporaryFolder()
    try Demo(path: folder.path + "/demo.db", logLevel: asked == .info ? .warning : asked).run()
    return .done
  }
}

/// A folder that is removed at the end.
final class TemporaryFolder {
  let path: String

  init() throws {
    let root = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(root)/fanout-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else {
      throw CommandFailure("can't make a temporary folder in \(root): \(unsafe String(cString: strerror(errno)))")
    }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    // The store's files; there are no folders within.
    if let entries = unsafe opendir(path) {
      while let entry = unsafe readdir(entries) {
        let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
          unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
        }
        if name != "." && name != ".." { _ = unsafe unlink("\(path)/\(name)") }
      }
      unsafe closedir(entries)
    }
    _ = unsafe rmdir(path)
  }
}

/// The story that `fanout demo` tells.
private final class Demo {
  private let output = Output()
  private let topics = Topics()
  private let broker: EmbeddedBroker
  private let kafka: ClientConfiguration
  private let store: SQLiteStore
  private let producer: EventProducer
  private let log: Log
  private var emitted = 0
  private var clock = Timestamp(microseconds: microsecondsSince1970() - 3_600_000_000)
  private var randomness = SystemRandomNumberGenerator()

  init(path: String, logLevel: Log.Level) throws {
    log = Log(level: logLevel) { level, message in note("\(level) \(message)") }
    broker = try EmbeddedBroker(topics: topics.all.map { ($0, 3) })
    kafka = ClientConfiguration(
      brokers: broker.bootstrapServers, properties: EmbeddedBroker.clientProperties)
    store = try SQLiteStore(path: path, access: .readWrite, settings: .standard)
    producer = try EventProducer(kafka, topics: topics)
  }

  func run() throws {
    let worker = Worker(WorkerConfiguration(kafka: kafka, topics: topics), store: store, log: log)
    let end = StopSwitch()
    let failure = FailureBox()
    _ = ServiceThread.run {
      do { try worker.run() } catch { failure.set("\(error)") }
      end.turn()
    }
    defer {
      worker.stop()
      end.wait()
      broker.close()
    }

    title("An embedded Kafka broker, a worker, and a SQLite store. Services emit:")
    let ann = try UserID("ann")
    let bob = try UserID("bob")
    let carl = try UserID("carl")
    let dora = try UserID("dora")
    let beach = try post(bob, "beach")
    let dunes = try post(bob, "dunes")
    let cat = try post(carl, "cat")
    let cake = try post(ann, "cake")
    try emit("ann follows bob", .present(.follow(actor: ann, target: bob), silent: false, extra: nil))
    try emit("ann follows carl", .present(.follow(actor: ann, target: carl), silent: false, extra: nil))
    try emit("bob posts “beach”", .published(beach, publishedAt: nil))
    try emit("carl posts “cat”", .published(cat, publishedAt: nil))
    try emit("bob posts “dunes”", .published(dunes, publishedAt: nil))
    try emit("ann posts “cake”", .published(cake, publishedAt: nil))
    try emit("bob likes ann's “cake”", .present(.like(actor: bob, post: cake), silent: false, extra: nil))
    try emit("bob likes it again, by a retry", .present(.like(actor: bob, post: cake), silent: false, extra: nil))
    try emit("carl has it as a favorite", .present(.favorite(actor: carl, post: cake), silent: false, extra: nil))
    try emit("dora follows ann", .present(.follow(actor: dora, target: ann), silent: false, extra: nil))
    try settle(worker, failure)
    title("What Ann sees:")
    try show(ann)

    title("Then some of it is undone:")
    try emit("bob takes his like back", .absent(.like(actor: bob, post: cake)))
    try emit("ann unfollows carl", .absent(.follow(actor: ann, target: carl)))
    try emit("bob deletes “beach”", .deleted(beach))
    try settle(worker, failure)
    title("What Ann sees now: no like, nothing of Carl's, no beach.")
    try show(ann)

    title("Now every topic is replayed from its beginning, into the same store:")
    let before = try CanonicalDump(of: store).digest().whole
    let replay = Replay(
      WorkerConfiguration(kafka: kafka, topics: topics, group: "fanout-demo-replay"), topicNames: topics.events,
      from: .beginning, store: store, log: log)
    let progress = try replay.run { _ in }
    let after = try CanonicalDump(of: store).digest().whole
    line("\(progress.counts.events) events applied again, \(progress.counts.changes) changes.")
    line("digest before  \(before)")
    line("digest after   \(after)")
    guard before == after else { throw CommandFailure("the replay changed the views, which it must never do") }
    line("Nothing changed. That is the point: crash, repeat, reorder or replay, the result is the same.")
    title("Next: fanout dev (a broker and a worker to play with), fanout --help")
  }

  // MARK: Steps

  private func emit(_ text: String, _ assertion: Assertion) throws {
    clock = Timestamp(microseconds: clock.microseconds + 60_000_000)
    let id = EventID.version7(milliseconds: UInt64(clock.microseconds / 1000), using: &randomness)
    let event = Event(id: id, source: "/demo", time: clock, assertion: assertion)
    try producer.send(event)
    emitted += 1
    line("\(Help.pad(event.type.rawValue, 15)) \(text)")
  }

  /// Waits until the worker has applied all that was emitted.
  private func settle(_ worker: Worker, _ failure: FailureBox) throws {
    try producer.flush(timeoutMilliseconds: 10_000)
    let deadline = Instant.after(milliseconds: 30_000)
    while worker.counts.records < emitted {
      if let message = failure.message { throw CommandFailure(message) }
      if Instant.now > deadline { throw CommandFailure("the worker did not apply the events in 30 s") }
      pause(milliseconds: 5)
    }
  }

  private func show(_ user: UserID) throws {
    let feedback = try store.feedback(of: user, after: nil, limit: 10)
    line("feedback (\(try store.unreadCount(of: user)) unread):")
    for row in ListPrinter.aligned(feedback.map { [time($0.time), sentence($0.edge)] }) { line("  " + row) }
    let feed = try store.feed(of: user, after: nil, limit: 10)
    line("feed:")
    for row in ListPrinter.aligned(feed.map { [time($0.publishedAt), $0.post.author.string, "“\($0.post.id)”"] }) {
      line("  " + row)
    }
  }

  private func sentence(_ edge: Edge) -> String {
    switch edge.kind {
    case .follow: "\(edge.actor) follows you"
    case .like: "\(edge.actor) likes your “\(edge.post?.string ?? "")”"
    case .favorite: "\(edge.actor) has your “\(edge.post?.string ?? "")” as a favorite"
    }
  }

  private func time(_ time: Timestamp) -> String { String(time.description.dropFirst(11).prefix(5)) }

  private func post(_ author: UserID, _ id: String) throws -> Post { Post(author: author, id: try PostID(id)) }

  private func title(_ text: String) {
    output.line()
    output.line(text)
    output.flush()
  }

  private func line(_ text: String) {
    output.line("  " + text)
    output.flush()
  }
}
