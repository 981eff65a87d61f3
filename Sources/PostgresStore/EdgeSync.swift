internal import FanoutStore

/// Fills feeds along follow edges and purges them along absent ones, and sees to it that what it went by still holds when it
/// returns.
struct EdgeSync {
  let database: Connection
  let settings: StoreSettings
  let hooks: StepHooks

  /// What the facts said of an edge when it was read.
  private struct Held {
    let edge: FollowEdge
    let isPresent: Bool
    /// From which time on the followee's posts are brought into the feed.
    var cutoff = FeedTrimmer.beginning
  }

  /// - Parameters:
  ///   - edges: different ones, sorted; unknown ones are passed over.
  ///   - deliveries: is increased by the feed rows that were new.
  /// - Returns: the owners whose feeds may want trimming or refilling.
  func sync(_ edges: [FollowEdge], deliveries: inout Int) throws(StoreError) -> Set<StoreKey> {
    var unsettled = Set<StoreKey>()
    var held = edges.isEmpty ? [] : try read(edges)
    while !held.isEmpty {
      hooks.reached?(.factsRead)
      let newest = try newestPosts(of: Set(held.filter(\.isPresent).map(\.edge.subject)))
      var share: [Held] = []
      var rows = 0
      for var edge in held {
        let posts = newest[edge.edge.subject] ?? (count: 0, cutoff: FeedTrimmer.beginning)
        // Nothing to bring into the feed: so it is with most follows, as most people don't post. What they publish from now
        // on, its own delivery brings.
        if edge.isPresent && posts.count == 0 { continue }
        if rows + posts.count > FeedWriter.rowsPerTransaction {
          try write(share, unsettled: &unsettled, &deliveries)
          share.removeAll(keepingCapacity: true)
          rows = 0
        }
        edge.cutoff = posts.cutoff
        share.append(edge)
        rows += posts.count + 1
      }
      try write(share, unsettled: &unsettled, &deliveries)
      guard hooks.checksAfterCommit else { break }
      held = try changed(since: held)
    }
    return unsettled
  }

  private func read(_ edges: [FollowEdge]) throws(StoreError) -> [Held] {
    try database.query(
      database.choose(Self.read, onCitus: Citus.readEdges), .keys(edges) { $0.actor }, .keys(edges) { $0.subject }
    ).map { Held(edge: FollowEdge(actor: $0.key(0), subject: $0.key(1)), isPresent: $0.flag(2)) }
  }

  /// The edges that are not any more as they were read, as they are now.
  private func changed(since held: [Held]) throws(StoreError) -> [Held] {
    var before: [FollowEdge: Bool] = [:]
    for edge in held { before[edge.edge] = edge.isPresent }
    return try read(held.map(\.edge)).filter { before[$0.edge] != $0.isPresent }
  }

  /// Writes what is at most a transaction's share.
  private func write(
    _ share: [Held], unsettled: inout Set<StoreKey>, _ deliveries: inout Int
  ) throws(StoreError) {
    if share.isEmpty { return }
    let present = share.filter(\.isPresent)
    if !present.isEmpty { try fill(present, &deliveries) }
    let absent = share.filter { !$0.isPresent }
    if !absent.isEmpty { try purge(absent) }
    hooks.reached?(.committedNotChecked)
    for edge in share { unsettled.insert(edge.edge.actor) }
    if hooks.checksAfterCommit, !present.isEmpty {
      try unsettled.formUnion(takeBack(present, &deliveries))
    }
  }

  private func fill(_ edges: [Held], _ deliveries: inout Int) throws(StoreError) {
    deliveries += try database.alone(hooks) { () throws(StoreError) in
      try database.change(
        database.choose(Self.backfill, onCitus: Citus.backfill), .keys(edges) { $0.edge.actor },
        .keys(edges) { $0.edge.subject }, .integers(edges) { $0.cutoff })
    }
    // An author's posts beyond the feed limit were left out, so what is older than the cut-off is no longer complete.
    let cut = edges.filter { $0.cutoff > FeedTrimmer.beginning }
    if !cut.isEmpty {
      try database.change(Self.cutOff, .keys(cut) { $0.edge.actor }, .integers(cut) { $0.cutoff })
    }
  }

  private func purge(_ edges: [Held]) throws(StoreError) {
    _ = try database.alone(hooks) { () throws(StoreError) in
      try database.query(
        database.choose(Self.purge, onCitus: Citus.purge), .keys(edges) { $0.edge.actor },
        .keys(edges) { $0.edge.subject })
    }
    // Whether rows went or not: a crash may have come between their removal and this.
    try database.query(database.choose(Self.recount, onCitus: Citus.recount), .keys(edges) { $0.edge.actor })
  }

  /// Looks for rows of posts that were deleted or moved before the back-fill that brought them was committed.
  private func takeBack(_ edges: [Held], _ deliveries: inout Int) throws(StoreError) -> Set<StoreKey> {
    let rows = try database.query(
      database.choose(Self.moved, onCitus: Citus.moved), .keys(edges) { $0.edge.actor },
      .keys(edges) { $0.edge.subject }, .integers(edges) { $0.cutoff }
    ).map { (owner: $0.key(0), post: $0.key(1)) }
    if rows.isEmpty { return [] }
    var posts: [StoreKey: Set<StoreKey>] = [:]
    for row in rows { posts[row.owner, default: []].insert(row.post) }
    var unsettled = Set<StoreKey>()
    let sync = PostSync(database: database, settings: settings, hooks: hooks)
    for (owner, posts) in posts {
      let work = posts.sorted().map { PostWork(key: $0, alongEdges: true) }
      try unsettled.formUnion(sync.sync(work, keys: owner...owner, ownFeeds: false, deliveries: &deliveries))
    }
    return unsettled
  }

  /// How many of each author's newest posts a new follower gets, and the time of the oldest of them if there are more.
  private func newestPosts(
    of authors: Set<StoreKey>
  ) throws(StoreError) -> [StoreKey: (count: Int, cutoff: Int64)] {
    if authors.isEmpty { return [:] }
    let limit = settings.feedLimit
    let newest = try database.query(
      database.choose(Self.newestPosts, onCitus: Citus.newestPosts), .keys(Array(authors)), .integer(limit + 1)
    ).map { row in
      let count = Int(row.integer(1))
      return (row.key(0), (count: count, cutoff: count > limit ? row.integer(2) : FeedTrimmer.beginning))
    }
    return Dictionary(newest) { first, _ in first }
  }
}

extension EdgeSync {
  private static let read = """
    SELECT e.actor, e.subject, e.state < 2 FROM unnest($1::uuid[], $2::uuid[]) w(actor, subject)
      JOIN edge e ON e.kind = 0 AND e.actor = w.actor AND e.subject = w.subject
    """

  private static let newestPosts = """
    SELECT a.key, n.count, n.oldest FROM unnest($1::uuid[]) a(key)
      CROSS JOIN LATERAL (SELECT count(*) AS count, min(at) AS oldest FROM (
        SELECT p.at FROM post p WHERE p.author = a.key AND NOT p.deleted AND p.at IS NOT NULL
        ORDER BY p.at DESC LIMIT $2::bigint) few) n
      WHERE n.count > 0
    """

  /// The posts of `w.author` that belong in feeds, kept whole by OFFSET 0 as in `PostSync`.
  private static func livePosts(from time: String) -> String {
    "SELECT at, key FROM post WHERE author = w.author AND at >= \(time) AND NOT deleted AND at IS NOT NULL OFFSET 0"
  }

  /// On follow the followee's newest posts appear. $1 to $3: followers, followees, cut-offs.
  private static let backfill = """
    INSERT INTO feed_row(owner, at, post)
    SELECT w.owner, p.at, p.key FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) w(owner, author, cutoff)
      CROSS JOIN LATERAL (\(livePosts(from: "w.cutoff"))) p
      ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING
    """

  private static let cutOff = """
    INSERT INTO feed_trim(owner, horizon, spare)
    SELECT owner, max(cutoff), -1 FROM unnest($1::uuid[], $2::bigint[]) w(owner, cutoff) GROUP BY owner ORDER BY owner
    ON CONFLICT(owner) DO UPDATE SET horizon = greatest(feed_trim.horizon, excluded.horizon), spare = -1
    """

  /// On unfollow the followee's posts all go: the live ones that are not older than the feed. The others were never in it, or
  /// whoever deleted or moved them takes them away.
  private static let purge = """
    WITH held AS MATERIALIZED (
      SELECT f.owner, f.at, f.post FROM unnest($1::uuid[], $2::uuid[]) w(owner, author)
        CROSS JOIN LATERAL (SELECT o.at FROM feed_row o WHERE o.owner = w.owner ORDER BY o.at LIMIT 1) oldest
        CROSS JOIN LATERAL (\(livePosts(from: "oldest.at"))) p
        JOIN feed_row f ON f.owner = w.owner AND f.at = p.at AND f.post = p.key
        ORDER BY 1, 2, 3 FOR UPDATE OF f)
    DELETE FROM feed_row f USING held h WHERE f.owner = h.owner AND f.at = h.at AND f.post = h.post
    """

  private static let recount = """
    WITH held AS MATERIALIZED (
      SELECT t.owner FROM (SELECT DISTINCT owner FROM unnest($1::uuid[]) w(owner)) w
        JOIN feed_trim t ON t.owner = w.owner ORDER BY 1 FOR UPDATE OF t)
    UPDATE feed_trim t SET spare = -1 FROM held h WHERE t.owner = h.owner
    """

  private static let moved = """
    SELECT w.owner, p.key FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) w(owner, author, cutoff)
      CROSS JOIN LATERAL (SELECT key, at, deleted, former FROM post
        WHERE author = w.author AND at IS NOT NULL AND (deleted OR former <> '{}') OFFSET 0) p
      CROSS JOIN LATERAL unnest(p.former || p.at) m(at)
      JOIN feed_row f ON f.owner = w.owner AND f.at = m.at AND f.post = p.key
      WHERE m.at >= w.cutoff AND (p.deleted OR m.at <> p.at)
    """
}
