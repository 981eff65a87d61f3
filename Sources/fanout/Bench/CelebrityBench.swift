internal import FanoutProducer
internal import FanoutStore
internal import FanoutWorker
internal import Kafka
internal import PostgresStore
internal import SocialEvents

/// A post to very many followers (SPEC 6, "Slices"): two worker processes share its slices, and ordinary traffic goes on beside it.
struct CelebrityBench {
  private static let sliceSize = 5000
  /// How long ordinary traffic runs alone: until caches are warm, and then to be measured, in milliseconds.
  private static let warmUp = 5000
  private static let alone = 15_000

  static func run(_ context: BenchContext) throws {
    guard let postgres = context.postgres else {
      context.report("celebrity", "skipped: several workers at once take --store postgres://…")
      return
    }
    try context.withSchema(in: postgres) { schema in
      try context.withTopics { kafka, topics in
        try CelebrityBench(context, schema, kafka, topics).run()
      }
    }
  }

  private let context: BenchContext
  private let schema: BenchSchema
  private let kafka: ClientConfiguration
  private let topics: Topics
  private let celebrity = Self.user(0)
  private let ordinary = OrdinaryTraffic.Users(ids: (1...2000).map(Self.user))

  private init(_ context: BenchContext, _ schema: BenchSchema, _ kafka: ClientConfiguration, _ topics: Topics) throws {
    self.context = context
    self.schema = schema
    self.kafka = kafka
    self.topics = topics
    try makeFollows()
  }

  private func run() throws {
    let traffic = try OrdinaryTraffic(ordinary, kafka, topics, store: schema.address)
    defer { traffic.stop() }
    let sharing = try withWorkers {
      pause(milliseconds: Self.warmUp)
      let start = Instant.now
      pause(milliseconds: Self.alone)
      let emitted = Instant.now
      try fanOut("first")
      let end = Instant.now
      report(
        alone: try traffic.delays(from: start, to: emitted), beside: try traffic.delays(from: emitted, to: end),
        seconds: end.seconds(since: emitted))
    }
    let shares = try sharing.map { worker in
      "\(grouped(try worker.count("deliveries"))) deliveries in \(try worker.count("slices")) slices"
    }
    context.report(
      "celebrity", "the workers' shares, with those of ordinary posts: \(shares.joined(separator: "; "))")

    // What a trigger costs must not be in the figures above.
    try countRowsOfTransactions()
    _ = try withWorkers { try fanOut("second") }
    func largest(_ rows: String) throws -> String {
      grouped(
        try schema.database.integer(
          "SELECT max(rows) FROM (SELECT sum(\(rows)) AS rows FROM bench_written GROUP BY transaction) t"))
    }
    // Ordinary posts that came while there was no worker are applied together.
    context.report(
      "celebrity",
      "\(try largest("rows - ordinary")) of its feed rows at most in one transaction, for slices of "
        + "\(grouped(Self.sliceSize)), and \(try largest("ordinary")) of ordinary posts; counted by a trigger in a second pass"
    )
  }

  private func report(alone: [Double], beside: [Double], seconds: Double) {
    func milliseconds(_ share: Double, _ delays: [Double]) -> String {
      "\(fixed(BenchContext.quantile(share, delays) * 1000, 1)) ms"
    }
    let ratio = BenchContext.quantile(0.99, beside) / BenchContext.quantile(0.99, alone)
    context.report(
      "celebrity",
      "fan-out to \(grouped(context.followers)) followers in \(fixed(seconds, 1)) s: "
        + "\(grouped(Double(context.followers) / seconds)) feed rows/s, \(context.brokerName)")
    context.report(
      "celebrity",
      "\(OrdinaryTraffic.eventsPerSecond) ordinary events/s beside it are visible after \(milliseconds(0.5, beside)) (median), "
        + "\(milliseconds(0.99, beside)) (p99 of \(grouped(beside.count))); without it \(milliseconds(0.5, alone)), "
        + "\(milliseconds(0.99, alone)) (p99 of \(grouped(alone.count))): p99 \(fixed(ratio, 2)) times as long")
  }

  // MARK: Workers

  /// Runs `body` while two workers share all partitions.
  /// - Returns: what each of them did.
  private func withWorkers(_ body: () throws -> Void) throws -> [WorkerProcess.Outcome] {
    let workers = try (1...2).map { _ in
      try WorkerProcess(
        context, kafka, topics, store: schema.address,
        ["--group", "fanout-bench", "--slice-size", String(Self.sliceSize)])
    }
    let deadline = Instant.after(milliseconds: 60_000)
    let partitions = (topics.events.count + 1) * BenchContext.partitions
    while true {
      let shares = try workers.map { try $0.assignedPartitions() ?? 0 }
      if shares.allSatisfy({ $0 > 0 }) && shares.reduce(0, +) == partitions { break }
      if Instant.now >= deadline { throw CommandFailure("two workers could not share the partitions: \(shares)") }
      pause(milliseconds: 50)
    }
    try body()
    for worker in workers { worker.stop() }
    return try workers.map { try $0.finish() }
  }

  // MARK: The post

  /// Emits a post of the celebrity and returns when it is in every follower's feed.
  private func fanOut(_ id: String) throws {
    let post = Post(author: celebrity, id: PostID(unchecked: id))
    let sentinels = try lastFollowers(post)
    let producer = try EventProducer(kafka, topics: topics, mode: .lowLatency)
    defer { producer.close(timeoutMilliseconds: 1000) }
    try producer.warm()
    try producer.send(
      Event(
        id: EventID(unchecked: id), source: "/bench", time: Timestamp(microseconds: microsecondsSince1970()),
        assertion: .published(post, publishedAt: nil)))
    try wait(for: post, sentinels)
    let rows = try schema.database.integer("SELECT count(*) FROM feed_row WHERE post = \(Self.key(post))")
    guard rows == context.followers + 1 else {
      throw CommandFailure(
        "the post is in \(rows) feeds, not in those of \(context.followers) followers and the author")
    }
  }

  /// The last follower of each slice. A slice is written in the order of its followers, so it is done when that one has the post:
  /// a few hundred look-ups tell what else takes counting a million rows.
  private func lastFollowers(_ post: Post) throws -> [StoreKey] {
    let slices = FanoutSlice.slices(of: post, edgeCount: context.followers, sliceSize: Self.sliceSize)
    return try schema.database.query(
      """
      SELECT last.actor FROM unnest($1::uuid[], $2::uuid[]) s(low, high)
        CROSS JOIN LATERAL (SELECT actor FROM edge WHERE kind = 0 AND subject = \(Self.key(celebrity))
          AND actor BETWEEN s.low AND s.high ORDER BY actor DESC LIMIT 1) last
      """, .keys(slices) { $0.keys.lowerBound }, .keys(slices) { $0.keys.upperBound }
    ).map { $0.key(0) }
  }

  private func wait(for post: Post, _ followers: [StoreKey]) throws {
    let deadline = Instant.after(milliseconds: 300_000)
    var missing = followers
    while true {
      missing = try schema.database.query(
        """
        SELECT o.owner FROM unnest($1::uuid[]) o(owner)
        WHERE NOT EXISTS (SELECT 1 FROM feed_row f WHERE f.owner = o.owner AND f.post = \(Self.key(post)) OFFSET 0)
        """, .keys(missing) { $0 }
      ).map { $0.key(0) }
      if missing.isEmpty { return }
      if Instant.now >= deadline {
        throw CommandFailure("\(missing.count) of \(followers.count) slices were not done after five minutes")
      }
      pause(milliseconds: 20)
    }
  }

  // MARK: Tables

  /// Writes the edges to the celebrity as workers would, and the ordinary users' among themselves. They follow the celebrity, too.
  private func makeFollows() throws {
    let store = try PostgresStore(address: schema.address, access: .readWrite, settings: .standard)
    let now = microsecondsSince1970()
    try schema.database.execute(
      """
      INSERT INTO edge(kind, state, time, actor, subject, recipient, event, actor_id, recipient_id)
      SELECT 0, 0, \(now) + n, fanout_key(id), \(Self.key(celebrity)), \(Self.key(celebrity)), 'e' || id, id,
        '\(celebrity.string)'
      FROM (SELECT n, '\(Self.idPrefix)' || lpad(to_hex(n), 12, '0') AS id FROM generate_series(1, \(context.followers)) n) f
      ORDER BY 4
      """)
    for distance in 1...OrdinaryTraffic.Users.followees {
      var facts = FactBatch()
      for index in ordinary.ids.indices {
        let edge = try ordinary.edge(index, distance: distance)
        let id = EventID(unchecked: "\(index)-\(distance)")
        facts.append(
          Event(
            id: id, source: "/bench", time: Timestamp(microseconds: now),
            assertion: .present(edge, silent: false, extra: nil)), recorded: nil)
      }
      facts.reduce()
      _ = try store.commitFacts(facts)
    }
    try schema.database.execute("VACUUM ANALYZE edge")
    // Else it comes in the midst of the measurement. It takes a right that not everybody has.
    _ = try? schema.database.execute("CHECKPOINT")
  }

  /// Has every statement that inserts feed rows write down how many, how many of these of ordinary posts, and in which
  /// transaction.
  private func countRowsOfTransactions() throws {
    try schema.database.execute(
      """
      CREATE TABLE bench_written(transaction xid8, rows bigint, ordinary bigint);
      CREATE FUNCTION bench_count() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO bench_written SELECT pg_current_xact_id(), count(*),
            count(*) FILTER (WHERE post <> \(Self.key(Post(author: celebrity, id: PostID(unchecked: "second"))))) FROM new_rows;
          RETURN NULL;
        END $$;
      CREATE TRIGGER bench_count AFTER INSERT ON feed_row REFERENCING NEW TABLE AS new_rows
        FOR EACH STATEMENT EXECUTE FUNCTION bench_count();
      """)
  }

  /// What ids begin with; twelve hexadecimal digits follow. They look like UUIDs and can be made in SQL as well.
  private static let idPrefix = "018f3c5e-7a10-7000-8000-"

  private static func user(_ number: Int) -> UserID {
    let digits = String(number, radix: 16)
    return UserID(unchecked: idPrefix + String(repeating: "0", count: 12 - digits.count) + digits)
  }

  private static func key(_ user: UserID) -> String { "fanout_key('\(user.string)')" }
  private static func key(_ post: Post) -> String { "fanout_key('\(post.author.string)', '\(post.id.string)')" }
}
