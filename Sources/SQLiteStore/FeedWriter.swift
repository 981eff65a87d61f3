internal import FanoutStore
internal import SocialEvents

/// Brings feeds in line with the committed facts (SPEC 5 and 6), set by set.
///
/// Every statement reads the facts inside the write transaction that changes the feed, and SQLite has one writer at a time. So
/// what a write assumes can't change before its commit, which is what step 3 of SPEC 6 asks for.
struct FeedWriter {
  let database: Connection
  let settings: StoreSettings

  /// Bounds a transaction, and with it the write-ahead log and the memory for sorting, whatever the batch holds.
  private static let rowsPerTransaction = 50_000

  /// Tables of this connection that hold what a transaction works on.
  static let temporaryTables = """
    CREATE TEMP TABLE IF NOT EXISTS work_post(
      key BLOB PRIMARY KEY, author BLOB, at INTEGER, deleted INTEGER, shared INTEGER, cell_low BLOB, cell_high BLOB
    ) WITHOUT ROWID;
    CREATE TEMP TABLE IF NOT EXISTS work_gone(
      post BLOB, author BLOB, at INTEGER, shared INTEGER, PRIMARY KEY(post, at)
    ) WITHOUT ROWID;
    CREATE TEMP TABLE IF NOT EXISTS work_edge(
      actor BLOB, subject BLOB, present INTEGER, cutoff INTEGER, PRIMARY KEY(actor, subject)
    ) WITHOUT ROWID;
    """

  // MARK: A batch

  func derive(_ batch: FactBatch, sliceSize: Int) throws(StoreError) -> Derivation {
    var result = Derivation()
    try derivePosts(batch.posts, sliceSize: sliceSize, into: &result)
    // The batch is sorted by kind, and follows come first.
    try deriveFollows(batch.edges.prefix { $0.edge.kind == .follow }, into: &result)
    return result
  }

  private func derivePosts(_ posts: [PostFact], sliceSize: Int, into result: inout Derivation) throws(StoreError) {
    var audiences: [StoreKey: Int] = [:]
    var next = 0
    while next < posts.count {
      var derivation = Derivation()
      let unsettled = try database.write { () throws(StoreError) -> Set<StoreKey> in
        try emptyWorkTables()
        var rows = 0
        while next < posts.count, rows < Self.rowsPerTransaction {
          let fact = posts[next]
          let audience: Int
          if let known = audiences[fact.authorKey] {
            audience = known
          } else {
            audience = try countEdges(to: fact.authorKey, atMost: sliceSize + 1)
            audiences[fact.authorKey] = audience
          }
          if audience > sliceSize {
            let all = try countEdges(to: fact.authorKey, atMost: .max)
            derivation.slices += FanoutSlice.slices(of: fact.post, edgeCount: all, sliceSize: sliceSize)
            try addWork(post: fact.key, alongEdges: false)
            rows += 1
          } else {
            try addWork(post: fact.key, alongEdges: true)
            rows += audience + 1
          }
          next += 1
        }
        return try syncWorkPosts(keys: .lowest ... .highest, ownFeeds: true, deliveries: &derivation.deliveries)
      }
      result.deliveries += derivation.deliveries
      result.slices += derivation.slices
      try settle(unsettled)
    }
  }

  private func deriveFollows(_ follows: ArraySlice<EdgeFact>, into result: inout Derivation) throws(StoreError) {
    var newest: [StoreKey: (count: Int, cutoff: Int64)] = [:]
    var next = 0
    while next < follows.endIndex {
      var deliveries = 0
      let unsettled = try database.write { () throws(StoreError) -> Set<StoreKey> in
        try emptyWorkTables()
        newest.removeAll(keepingCapacity: true)
        var rows = 0
        while next < follows.endIndex, rows < Self.rowsPerTransaction {
          let fact = follows[next]
          let posts: (count: Int, cutoff: Int64)
          if let known = newest[fact.subjectKey] {
            posts = known
          } else {
            posts = try newestPosts(of: fact.subjectKey)
            newest[fact.subjectKey] = posts
          }
          next += 1
          // Nothing to bring into the feed: so it is with most follows, as most people don't post.
          if fact.isPresent && posts.count == 0 { continue }
          let add = try database.statement(Self.addWorkEdge)
          add.bind(1, fact.actorKey)
          add.bind(2, fact.subjectKey)
          add.bind(3, posts.cutoff)
          try add.run()
          rows += posts.count + 1
        }
        return try syncWorkEdges(deliveries: &deliveries)
      }
      result.deliveries += deliveries
      try settle(unsettled)
    }
  }

  // MARK: A slice

  func derive(_ slice: FanoutSlice, sliceSize: Int) throws(StoreError) -> Int {
    let keys = slice.keys
    let post = StoreKey(slice.post)
    let author = StoreKey(slice.post.author)
    var deliveries = 0
    var low = keys.lowerBound
    // However many followers have come since the ranges were drawn, all are reached, `sliceSize` at a time.
    while true {
      var last: StoreKey?
      let unsettled = try database.write { () throws(StoreError) -> Set<StoreKey> in
        try emptyWorkTables()
        try addWork(post: post, alongEdges: true)
        last = try lastOfChunk(to: author, keys: low...keys.upperBound, size: sliceSize)
        return try syncWorkPosts(
          keys: low...(last ?? keys.upperBound), ownFeeds: false, deliveries: &deliveries)
      }
      try settle(unsettled)
      guard let last, last < keys.upperBound else { return deliveries }
      low = last.successor
    }
  }

  // MARK: Steps of a transaction

  private func emptyWorkTables() throws(StoreError) {
    for sql in ["DELETE FROM work_post", "DELETE FROM work_gone", "DELETE FROM work_edge"] {
      try database.statement(sql).run()
    }
  }

  private func addWork(post: StoreKey, alongEdges: Bool) throws(StoreError) {
    let cell = settings.sampledCell()
    let add = try database.statement(
      "INSERT INTO work_post SELECT key, author, at, deleted, ?2, ?3, ?4 FROM post WHERE key = ?1")
    add.bind(1, post)
    add.bind(2, alongEdges ? 1 : 0)
    add.bind(3, cell.lowerBound)
    add.bind(4, cell.upperBound)
    try add.run()
  }

  /// Delivers and retracts the posts in `work_post`.
  /// - Returns: the owners whose feeds may want trimming or refilling.
  private func syncWorkPosts(
    keys: ClosedRange<StoreKey>, ownFeeds: Bool, deliveries: inout Int
  ) throws(StoreError) -> Set<StoreKey> {
    let deliver = try database.statement(Self.deliver)
    deliver.bind(1, keys.lowerBound)
    deliver.bind(2, keys.upperBound)
    deliver.bind(3, try newestHorizon())
    deliver.bind(4, ownFeeds && settings.includesOwnPosts ? 1 : 0)
    try deliver.run()
    deliveries += database.changes

    var unsettled = Set<StoreKey>()
    let sampled = try database.statement(Self.sampledOwners)
    sampled.bind(1, keys.lowerBound)
    sampled.bind(2, keys.upperBound)
    sampled.bind(3, ownFeeds ? 1 : 0)
    unsettled.formUnion(try sampled.rows { sampled.key(0) })

    try database.statement(Self.findGone).run()
    guard database.changes > 0 else { return unsettled }
    for sql in [Self.retract, Self.retractSpare] {
      let statement = try database.statement(sql)
      statement.bind(1, keys.lowerBound)
      statement.bind(2, keys.upperBound)
      statement.bind(3, ownFeeds ? 1 : 0)
      let short = try statement.rows { (statement.key(0), statement.integer(1)) }
      unsettled.formUnion(short.filter { $0.1 < 0 }.map(\.0))
    }
    // Now no feed holds the posts under these times any more. A slice can't know that of the other slices.
    if ownFeeds { try database.statement(Self.forgetFormer).run() }
    return unsettled
  }

  /// Fills and purges feeds along the follow edges in `work_edge`.
  private func syncWorkEdges(deliveries: inout Int) throws(StoreError) -> Set<StoreKey> {
    let backfill = try database.statement(Self.backfill)
    backfill.bind(1, try newestHorizon())
    try backfill.run()
    deliveries += database.changes
    // An author's posts beyond the feed limit were left out, so what is older than the cut-off is no longer complete.
    try database.statement(Self.cutOff).run()

    let purge = try database.statement(Self.purge)
    try purge.run()
    if database.changes > 0 {
      try database.statement(
        "UPDATE feed_trim SET spare = -1 WHERE owner IN (SELECT actor FROM work_edge WHERE NOT present)"
      ).run()
    }
    let touched = try database.statement("SELECT DISTINCT actor FROM work_edge")
    return Set(try touched.rows { touched.key(0) })
  }

  private func settle(_ owners: Set<StoreKey>) throws(StoreError) {
    try FeedTrimmer(database: database, settings: settings).settle(owners.sorted())
  }

  // MARK: Look-ups

  private func countEdges(to author: StoreKey, atMost limit: Int) throws(StoreError) -> Int {
    let count = try database.statement(
      "SELECT count(*) FROM (SELECT 1 FROM edge INDEXED BY edge_by_subject WHERE kind = 0 AND subject = ?1 LIMIT ?2)")
    count.bind(1, author)
    count.bind(2, limit)
    return Int(try count.first { count.integer(0) } ?? 0)
  }

  /// How many of an author's newest posts a new follower gets, and the time of the oldest of them if there are more.
  private func newestPosts(of author: StoreKey) throws(StoreError) -> (count: Int, cutoff: Int64) {
    let select = try database.statement(
      """
      SELECT count(*), min(at) FROM (SELECT at FROM post INDEXED BY post_live
        WHERE author = ?1 AND deleted = 0 AND at IS NOT NULL ORDER BY at DESC LIMIT ?2)
      """)
    select.bind(1, author)
    select.bind(2, settings.feedLimit + 1)
    let (count, oldest) = try select.first { (Int(select.integer(0)), select.integer(1)) } ?? (0, 0)
    return (count, count > settings.feedLimit ? oldest : FeedTrimmer.beginning)
  }

  /// The follower with which a transaction's share of a slice ends; nil if the rest fits.
  private func lastOfChunk(
    to author: StoreKey, keys: ClosedRange<StoreKey>, size: Int
  ) throws(StoreError) -> StoreKey? {
    let select = try database.statement(
      """
      SELECT actor FROM edge INDEXED BY edge_by_subject
      WHERE kind = 0 AND subject = ?1 AND actor BETWEEN ?2 AND ?3 ORDER BY actor LIMIT 1 OFFSET ?4
      """)
    select.bind(1, author)
    select.bind(2, keys.lowerBound)
    select.bind(3, keys.upperBound)
    select.bind(4, max(1, size) - 1)
    return try select.first { select.key(0) }
  }

  /// The greatest horizon of any trimmed feed: posts that are not older are delivered without looking at horizons.
  private func newestHorizon() throws(StoreError) -> Int64 {
    let select = try database.statement("SELECT max(horizon) FROM feed_trim")
    return try select.first { select.isNull(0) ? FeedTrimmer.beginning : select.integer(0) } ?? FeedTrimmer.beginning
  }
}

extension FeedWriter {
  // CROSS JOIN fixes the order of the loops: from the few posts or edges at hand to the many rows. Rows are sorted by the
  // feed's key before they are inserted, so that neighbours go to the same page.

  /// ?1 and ?2: the range of followers. ?3: posts at least this new skip the look at the owner's horizon. ?4: own feeds too.
  private static let deliver = """
    INSERT OR IGNORE INTO feed(owner, at, post)
    SELECT e.actor, w.at, w.key FROM work_post w CROSS JOIN edge e INDEXED BY edge_by_subject
      ON e.kind = 0 AND e.subject = w.author AND e.actor BETWEEN ?1 AND ?2 AND e.state < 2
      WHERE w.shared AND NOT w.deleted AND w.at IS NOT NULL
        AND (w.at >= ?3 OR NOT EXISTS (SELECT 1 FROM feed_trim t WHERE t.owner = e.actor AND t.horizon > w.at))
    UNION ALL
    SELECT w.author, w.at, w.key FROM work_post w
      WHERE ?4 AND NOT w.deleted AND w.at IS NOT NULL
        AND (w.at >= ?3 OR NOT EXISTS (SELECT 1 FROM feed_trim t WHERE t.owner = w.author AND t.horizon > w.at))
    ORDER BY 1, 2, 3
    """

  /// The owners who fell into the cell of key space that was drawn for the post.
  private static let sampledOwners = """
    SELECT e.actor FROM work_post w CROSS JOIN edge e INDEXED BY edge_by_subject
      ON e.kind = 0 AND e.subject = w.author AND e.actor BETWEEN max(?1, w.cell_low) AND min(?2, w.cell_high)
      WHERE w.shared AND NOT w.deleted AND w.at IS NOT NULL AND e.state < 2
    UNION
    SELECT author FROM work_post WHERE ?3 AND author BETWEEN cell_low AND cell_high
    """

  /// Under which times feeds may hold a post where it no longer belongs: all of a deleted one's, the former ones of another.
  private static let findGone = """
    INSERT INTO work_gone(post, author, at, shared)
    SELECT key, author, at, shared FROM work_post WHERE deleted AND at IS NOT NULL
    UNION
    SELECT w.key, w.author, f.at, w.shared FROM work_post w JOIN post_former f ON f.post = w.key
      WHERE w.deleted OR f.at <> w.at
    """

  private static let forgetFormer = """
    DELETE FROM post_former WHERE (post, at) IN (SELECT post, at FROM work_gone WHERE shared)
    """

  /// Everybody who has or had an edge to the author, and the author (SPEC 6: "present or absent").
  private static let holders = """
    SELECT e.actor AS owner, g.at AS at, g.post AS post FROM work_gone g CROSS JOIN edge e INDEXED BY edge_by_subject
      ON e.kind = 0 AND e.subject = g.author AND e.actor BETWEEN ?1 AND ?2 WHERE g.shared
    UNION ALL
    SELECT author, at, post FROM work_gone WHERE ?3
    """

  /// The holders are wrapped in a plain SELECT since SQLite looks rows up by a list of rows only if that is no compound one;
  /// else it reads the whole table for each slice.
  private static let retract = "DELETE FROM feed WHERE (owner, at, post) IN (SELECT owner, at, post FROM (\(holders)))"

  /// Counts a removal for every trimmed feed that may have lost a row, whether it had the row or not: too many only means that
  /// the feed is looked at sooner.
  private static let retractSpare = """
    UPDATE feed_trim SET spare = spare - (SELECT count(*) FROM work_gone)
    WHERE owner IN (SELECT owner FROM (\(holders))) RETURNING owner, spare
    """

  private static let addWorkEdge = """
    INSERT OR REPLACE INTO work_edge(actor, subject, present, cutoff)
    SELECT actor, subject, state < 2, ?3 FROM edge WHERE kind = 0 AND actor = ?1 AND subject = ?2
    """

  /// On follow the followee's newest posts appear.
  private static let backfill = """
    INSERT OR IGNORE INTO feed(owner, at, post)
    SELECT w.actor, p.at, p.key FROM work_edge w CROSS JOIN post p INDEXED BY post_live
      ON p.author = w.subject AND p.at >= w.cutoff AND p.deleted = 0 AND p.at IS NOT NULL
      WHERE w.present
        AND (p.at >= ?1 OR NOT EXISTS (SELECT 1 FROM feed_trim t WHERE t.owner = w.actor AND t.horizon > p.at))
    ORDER BY 1, 2, 3
    """

  private static let cutOff = """
    INSERT INTO feed_trim(owner, horizon, spare)
    SELECT actor, max(cutoff), -1 FROM work_edge WHERE present AND cutoff > \(FeedTrimmer.beginning) GROUP BY actor
    ON CONFLICT(owner) DO UPDATE SET horizon = max(horizon, excluded.horizon), spare = -1
    """

  /// On unfollow the followee's posts all go.
  private static let purge = """
    DELETE FROM feed WHERE owner IN (SELECT actor FROM work_edge WHERE NOT present)
      AND EXISTS (SELECT 1 FROM post p CROSS JOIN work_edge w ON w.actor = feed.owner AND w.subject = p.author
        WHERE p.key = feed.post AND NOT w.present)
    """
}
