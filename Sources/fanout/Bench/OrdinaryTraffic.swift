internal import FanoutProducer
internal import FanoutStore
internal import FanoutWorker
internal import Kafka
internal import PostgresStore
internal import SocialEvents
internal import Synchronization

/// Likes, follows and small posts at a steady pace, each watched from just before it is emitted until a reader is shown it.
///
/// Two threads: one emits; the other asks the store every two milliseconds which of the events that it waits for are visible.
final class OrdinaryTraffic: Sendable {
  static let eventsPerSecond = 200

  /// People who follow each other in a ring, each the next twenty.
  struct Users: Sendable {
    let ids: [UserID]
    static let followees = 20

    /// Person `index` and whom that person follows at a distance along the ring.
    func edge(_ index: Int, distance: Int) throws(InvalidEvent) -> Edge {
      try .follow(actor: self[index], target: self[index + distance])
    }

    subscript(index: Int) -> UserID { ids[(index % ids.count + ids.count) % ids.count] }
  }

  /// What a reader is shown once an event has been applied.
  private struct Watched {
    /// 0: a follow, 1: a like, 2: an item of a feed.
    let view: Int
    let first: StoreKey
    let second: StoreKey
    let time: Int64
    let emittedAt: Instant
  }

  private struct State {
    /// In the order in which they were emitted.
    var waiting: [Watched] = []
    var seen: [(emittedAt: Instant, seconds: Double)] = []
    var isStopping = false
    var runningThreads = 0
    var failure: (any Error)?
  }

  private let users: Users
  private let state = Mutex(State())

  /// The most events that are asked for at once, so that asking takes little of what is measured. More wait only when they have
  /// waited for long; then they take turns.
  private static let askedAtOnce = 64

  /// Starts emitting and watching.
  init(_ users: Users, _ kafka: ClientConfiguration, _ topics: Topics, store address: String) throws {
    self.users = users
    let producer = try EventProducer(kafka, topics: topics, mode: .lowLatency)
    try producer.warm()
    try start { [self] in
      defer { producer.close(timeoutMilliseconds: 1000) }
      try emit(producer)
    }
    try start { [self] in try watch(try Connection(address)) }
  }

  private func start(_ body: @escaping @Sendable () throws -> Void) throws {
    state.withLock { $0.runningThreads += 1 }
    let started = ServiceThread.run { [self] in
      do { try body() } catch { state.withLock { $0.failure = $0.failure ?? error } }
      state.withLock { $0.runningThreads -= 1 }
    }
    if !started { throw CommandFailure("the system has no thread left") }
  }

  private var isStopping: Bool { state.withLock { $0.isStopping || $0.failure != nil } }

  /// Ends both threads.
  func stop() {
    state.withLock { $0.isStopping = true }
    while state.withLock({ $0.runningThreads > 0 }) { pause(milliseconds: 2) }
  }

  /// How long, in seconds, it took each event that was emitted in a span of time to become visible. Waits for those that are not.
  func delays(from start: Instant, to end: Instant) throws -> [Double] {
    let deadline = Instant.after(milliseconds: 120_000)
    while true {
      let (first, delays, failure) = state.withLock { state in
        (
          state.waiting.first?.emittedAt,
          state.seen.filter { $0.emittedAt >= start && $0.emittedAt < end }.map(\.seconds), state.failure
        )
      }
      if let failure { throw failure }
      if first ?? .now >= end { return delays }
      if Instant.now >= deadline { throw CommandFailure("an ordinary event was not visible after two minutes") }
      pause(milliseconds: 10)
    }
  }

  // MARK: Emitting

  private func emit(_ producer: EventProducer) throws {
    var random = BenchData.Generator(state: 2)
    let start = Instant.now
    var number = 0
    while !isStopping {
      let due = start.advanced(milliseconds: number * 1000 / Self.eventsPerSecond)
      pause(milliseconds: due.millisecondsFromNow)
      let id = EventID.version7(milliseconds: UInt64(microsecondsSince1970() / 1000), using: &random)
      let (assertion, view, first, second) = try next(number, id)
      let time = microsecondsSince1970()
      let event = Event(id: id, source: "/bench", time: Timestamp(microseconds: time), assertion: assertion)
      state.withLock {
        $0.waiting.append(Watched(view: view, first: first, second: second, time: time, emittedAt: .now))
      }
      try producer.send(event)
      number += 1
    }
  }

  /// Half of them likes, three in ten follows, one in five posts. Each is about something new, so none is visible before.
  private func next(_ number: Int, _ id: EventID) throws -> (Assertion, view: Int, StoreKey, StoreKey) {
    let count = users.ids.count
    // Steps through all users in an order that looks like none: 7919 is a prime, and their count is no multiple of it.
    let one = number * 7919
    let actor = users[one]
    switch number % 10 {
    case 0..<5:
      let post = Post(author: users[one + 1 + number % 100], id: PostID(unchecked: id.string))
      return (.present(.like(actor: actor, post: post), silent: false, extra: nil), 1, StoreKey(actor), StoreKey(post))
    case 5..<8:
      let edge = try users.edge(one, distance: Users.followees + 1 + number / count)
      return (.present(edge, silent: false, extra: nil), 0, StoreKey(actor), StoreKey(edge.recipient))
    default:
      let post = Post(author: actor, id: PostID(unchecked: id.string))
      return (.published(post, publishedAt: nil), 2, StoreKey(users[one - 1]), StoreKey(post))
    }
  }

  // MARK: Watching

  private func watch(_ database: Connection) throws {
    // As the store's own readers do it: one plan, along indexes.
    try database.execute(
      "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; SET jit = off")
    var start = 0
    while !isStopping {
      let asked = state.withLock { state in
        if start >= state.waiting.count { start = 0 }
        return Array(state.waiting[start...].prefix(Self.askedAtOnce))
      }
      if !asked.isEmpty {
        let visible = try database.query(
          Self.visible, .integers(Array(asked.indices)) { Int64($0) }, .smallIntegers(asked) { $0.view },
          .keys(asked) { $0.first }, .keys(asked) { $0.second }, .integers(asked) { $0.time }
        ).map { Int($0.integer(0)) }
        let now = Instant.now
        state.withLock { state in
          for index in visible {
            state.seen.append((asked[index].emittedAt, now.seconds(since: asked[index].emittedAt)))
          }
          // Only this thread removes, so those that were asked for are where they were.
          for index in visible.sorted().reversed() { state.waiting.remove(at: start + index) }
        }
        start += asked.count - visible.count
      }
      pause(milliseconds: 2)
    }
  }

  /// OFFSET 0 keeps the planner from reading all likes into a hash table.
  private static let visible = """
    SELECT w.n FROM unnest($1::bigint[], $2::smallint[], $3::uuid[], $4::uuid[], $5::bigint[])
      w(n, view, first, second, time)
    WHERE CASE w.view
      WHEN 0 THEN EXISTS (SELECT 1 FROM follows f WHERE f.actor = w.first AND f.subject = w.second OFFSET 0)
      WHEN 1 THEN EXISTS (SELECT 1 FROM likes l WHERE l.actor = w.first AND l.subject = w.second OFFSET 0)
      ELSE EXISTS (SELECT 1 FROM feed i WHERE i.owner = w.first AND i.at = w.time AND i.post = w.second OFFSET 0)
    END
    """
}
