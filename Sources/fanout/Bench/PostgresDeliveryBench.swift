private import Dispatch
internal import FanoutStore
internal import PostgresStore
internal import SocialEvents
internal import Synchronization

/// Fanning posts out into feeds on PostgreSQL, beside the set-based statement that one would begin with, issued by psql on tables
/// with text ids. The same follows and the same posts, in turns. The statement has one connection, the store one or, as in a
/// worker, two with half of the posts each.
struct PostgresDeliveryBench {
  /// Of one turn; no more than the store writes in a transaction, so that it is one for each side.
  private static let rowsPerTurn = 45_000
  /// How many rows of each user there are before anything is measured: what an insert costs grows with the index.
  private static let rowsBefore = 10

  /// The tables of the other side: the narrowest that will do, and what most people write.
  private static let layouts = [
    (
      table: "naive_feed", words: "one primary key (owner, at, author, post)",
      keys: "PRIMARY KEY(owner, at, author, post)", index: ""
    ),
    (
      table: "naive_feed_indexed", words: "primary key (owner, author, post) and an index (owner, at)",
      keys: "PRIMARY KEY(owner, author, post)", index: "CREATE INDEX ON naive_feed_indexed(owner, at)"
    ),
  ]

  static func run(_ context: BenchContext, _ postgres: String) throws {
    guard Psql.isInstalled(context) else {
      context.report("deliveries", "skipped: psql is not installed (Debian: postgresql-client)")
      return
    }
    try context.withSchema(in: postgres) { schema in
      var bench = try PostgresDeliveryBench(context, schema)
      var rowsBefore = 0
      while rowsBefore < Self.rowsBefore * context.events { rowsBefore += try bench.turn(rowsBefore, writers: 1).rows }
      var rows = 0
      // By the number of our connections.
      var ours: [Int: [Double]] = [1: [], 2: []]
      var theirs: [[Double]] = layouts.map { _ in [] }
      for number in 0..<10 * context.rounds {
        let writers = 1 + number % 2
        let turn = try bench.turn(number / 2, writers: writers)
        rows += turn.rows
        ours[writers]?.append(turn.ours)
        for (index, rate) in turn.theirs.enumerated() { theirs[index].append(rate) }
      }
      let one = BenchContext.median(ours[1] ?? [])
      let two = BenchContext.median(ours[2] ?? [])
      context.report(
        "deliveries",
        "\(grouped(one)) feed rows/s by one connection, \(grouped(two)) by two (\(grouped(rows)) rows on each side, after "
          + "\(grouped(rowsBefore)))")
      for (layout, rate) in zip(layouts, theirs.map(BenchContext.median)) {
        context.report(
          "deliveries",
          "\(fixed(one / rate, 2)) and \(fixed(two / rate, 2)) times as fast as psql with text ids and \(layout.words): "
            + "\(grouped(rate)) rows/s")
      }
      let bytes = try (["feed_row"] + layouts.map(\.table)).map { try schema.bytesPerRow(of: $0) }
      context.report(
        "deliveries", "\(bytes[0]) bytes a feed row with its index; with text ids \(bytes[1]) and \(bytes[2])")
    }
  }

  private let context: BenchContext
  private let schema: BenchSchema
  private let store: PostgresStore
  private var data: BenchData
  private var followers: [UserID: Int] = [:]

  /// Makes the follows, and the same in the tables of the other side.
  private init(_ context: BenchContext, _ schema: BenchSchema) throws {
    self.context = context
    self.schema = schema
    // Without authors' own posts, which the plain statement leaves out.
    store = try PostgresStore(
      address: schema.address, access: .readWrite, settings: StoreSettings(includesOwnPosts: false))
    data = BenchData(users: context.events)
    for _ in 0..<max(1, context.events * 5 / 20_000) {
      var facts = FactBatch()
      for _ in 0..<20_000 { facts.append(data.event(data.follow()), recorded: nil) }
      facts.reduce()
      _ = try store.commitFacts(facts)
    }
    let database = schema.database
    try database.execute(
      """
      CREATE TABLE naive_follows(author text, follower text, PRIMARY KEY(author, follower));
      INSERT INTO naive_follows SELECT recipient_id, actor_id FROM edge ORDER BY event;
      """)
    for layout in Self.layouts {
      try database.execute(
        "CREATE TABLE \(layout.table)(owner text, at bigint, author text, post text, \(layout.keys)); \(layout.index)")
    }
    for table in ["edge", "naive_follows"] { try database.execute("VACUUM ANALYZE \(table)") }
    let audiences = try database.query("SELECT author, count(*) FROM naive_follows GROUP BY author").map {
      ($0.user(0), Int($0.integer(1)))
    }
    followers = Dictionary(audiences) { first, _ in first }
  }

  /// One transaction of each side with the same posts.
  /// - Returns: the rows that each side wrote, and the rows a second of each.
  private mutating func turn(_ number: Int, writers: Int) throws -> (rows: Int, ours: Double, theirs: [Double]) {
    let batches = posts(in: writers)
    for batch in batches { _ = try store.commitFacts(batch) }
    var rows = [0, 0, 0]
    var rates = [0.0, 0, 0]
    // Each comes first in a third of the turns.
    for side in [0, 1, 2].map({ ($0 + number) % 3 }) {
      let seconds: Double
      if side == 0 {
        seconds = try BenchContext.time { rows[side] = try deliver(batches) }
      } else {
        let statement = Self.statement(batches.flatMap(\.posts), into: Self.layouts[side - 1].table)
        (seconds, rows[side]) = try Psql.insert(statement, schema, context)
      }
      rates[side] = Double(rows[side]) / seconds
    }
    guard Set(rows).count == 1 else { throw CommandFailure("the sides wrote different numbers of rows: \(rows)") }
    return (rows[0], rates[0], Array(rates[1...]))
  }

  /// Delivers the posts of each batch over a connection of its own, at once.
  /// - Returns: how many feed rows are new.
  private func deliver(_ batches: [FactBatch]) throws -> Int {
    if batches.count == 1 { return try store.deriveViews(of: batches[0], sliceSize: 1_000_000).deliveries }
    let results = Mutex<[Result<Int, any Error>]>([])
    let store = store
    DispatchQueue.concurrentPerform(iterations: batches.count) { index in
      let result = Result { try store.deriveViews(of: batches[index], sliceSize: 1_000_000).deliveries }
      results.withLock { $0.append(result) }
    }
    return try results.withLock { try $0.reduce(0) { try $0 + $1.get() } }
  }

  /// As many posts as make a turn, by all kinds of authors, some of them popular, dealt to so many batches.
  private mutating func posts(in count: Int) -> [FactBatch] {
    var batches = [FactBatch](repeating: FactBatch(), count: count)
    var rows = 0
    var posts = 0
    while true {
      let author = posts % 100 == 50 ? data.popular() : data.anyone()
      rows += followers[author] ?? 0
      if rows > Self.rowsPerTurn && posts >= count { break }
      let post = Post(author: author, id: PostID(unchecked: data.event(data.follow()).id.string))
      batches[posts % count].append(data.event(.published(post, publishedAt: nil)), recorded: nil)
      posts += 1
    }
    for index in batches.indices { batches[index].reduce() }
    return batches
  }

  private static func statement(_ posts: [PostFact], into table: String) -> String {
    // The ids are made up and hold nothing that would need quoting.
    func array(_ type: String, _ value: (PostFact) -> String) -> String {
      "'{\(posts.map(value).joined(separator: ","))}'::\(type)[]"
    }
    return """
      INSERT INTO \(table)(owner, at, author, post)
      SELECT f.follower, p.at, p.author, p.post
      FROM naive_follows f JOIN unnest(\(array("text") { $0.post.author.string }), \(array("text") { $0.post.id.string }),
        \(array("bigint") { "\($0.publication?.publishedAt.microseconds ?? 0)" })) p(author, post, at) USING (author)
      """
  }
}
