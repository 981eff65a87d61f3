internal import FanoutStore
internal import SQLiteStore
internal import SocialEvents

/// Fanning posts out into feeds, beside the plain set-based statement on tables with text ids.
enum DeliveryBench {
  static func run(_ context: BenchContext) throws {
    if let postgres = context.postgres { return try PostgresDeliveryBench.run(context, postgres) }
    var data = BenchData(users: context.events)
    var facts = FactBatch()
    for _ in 0..<context.events * 5 { facts.append(data.event(data.follow()), recorded: nil) }
    facts.reduce()

    let store = try SQLiteStore(path: context.newPath(), access: .readWrite, settings: .standard)
    _ = try store.commitFacts(facts)
    let plain = try PlainFeed(path: context.newPath())
    try plain.addFollows(facts.edges.map(\.edge))

    // Posts by all kinds of authors, some of them popular, the two sides in turns.
    var ours: [Double] = []
    var theirs: [Double] = []
    var deliveries = 0
    var plainDeliveries = 0
    for _ in 0..<2 * context.rounds {
      var batch = FactBatch()
      for _ in 0..<5000 {
        let author = data.anyone()
        let post = Post(author: author, id: PostID(unchecked: data.event(data.follow()).id.string))
        batch.append(data.event(.published(post, publishedAt: nil)), recorded: nil)
      }
      for _ in 0..<50 {
        let post = Post(author: data.popular(), id: PostID(unchecked: data.event(data.follow()).id.string))
        batch.append(data.event(.published(post, publishedAt: nil)), recorded: nil)
      }
      batch.reduce()
      _ = try store.commitFacts(batch)
      try plain.addPosts(batch.posts)
      ours.append(
        try BenchContext.time { deliveries += try store.deriveViews(of: batch, sliceSize: 1_000_000).deliveries })
      theirs.append(try BenchContext.time { plainDeliveries += try plain.deliver(batch.posts) })
    }
    let a = ours.reduce(0, +)
    let b = theirs.reduce(0, +)
    // The plain feed leaves out authors' own posts.
    let ourRate = Double(deliveries) / a
    let plainRate = Double(plainDeliveries) / b
    context.report(
      "deliveries",
      "\(grouped(ourRate)) feed rows/s; plain statement with text ids \(grouped(plainRate)) rows/s: "
        + "\(fixed(ourRate / plainRate, 2)) times as fast (\(grouped(deliveries)) and \(grouped(plainDeliveries)) rows)"
    )
  }
}

/// The tables and the statement that one would begin with.
private final class PlainFeed {
  private let database: Connection

  init(path: String) throws {
    database = try Connection(path: path, access: .create)
    try database.execute(
      """
      PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768;
      PRAGMA wal_autocheckpoint = 4000;
      CREATE TABLE follows(author TEXT, follower TEXT, PRIMARY KEY(author, follower)) WITHOUT ROWID;
      CREATE TABLE posts(author TEXT, post TEXT, at INTEGER, PRIMARY KEY(author, post)) WITHOUT ROWID;
      CREATE TABLE feed(owner TEXT, at INTEGER, author TEXT, post TEXT, PRIMARY KEY(owner, at, author, post)) WITHOUT ROWID;
      CREATE TEMP TABLE batch(author TEXT, post TEXT);
      """)
  }

  func addFollows(_ edges: [Edge]) throws {
    let insert = try database.statement("INSERT OR IGNORE INTO follows VALUES(?1, ?2)")
    try database.write { () throws(StoreError) in
      for edge in edges {
        insert.bind(1, edge.recipient.string)
        insert.bind(2, edge.actor.string)
        try insert.run()
      }
    }
  }

  func addPosts(_ posts: [PostFact]) throws {
    let insert = try database.statement("INSERT OR IGNORE INTO posts VALUES(?1, ?2, ?3)")
    try database.write { () throws(StoreError) in
      for fact in posts {
        insert.bind(1, fact.post.author.string)
        insert.bind(2, fact.post.id.string)
        insert.bind(3, fact.publication?.publishedAt.microseconds ?? 0)
        try insert.run()
      }
    }
  }

  func deliver(_ posts: [PostFact]) throws -> Int {
    let add = try database.statement("INSERT INTO batch VALUES(?1, ?2)")
    return try database.write { () throws(StoreError) -> Int in
      try database.statement("DELETE FROM batch").run()
      for fact in posts {
        add.bind(1, fact.post.author.string)
        add.bind(2, fact.post.id.string)
        try add.run()
      }
      try database.statement(
        """
        INSERT OR IGNORE INTO feed SELECT f.follower, p.at, p.author, p.post
        FROM batch b JOIN posts p ON p.author = b.author AND p.post = b.post JOIN follows f ON f.author = p.author
        """
      ).run()
      return database.changes
    }
  }
}
