internal import FanoutStore

/// Delivers and retracts posts, and sees to it that what it went by still holds when it returns.
struct PostSync {
  let database: Connection
  let settings: StoreSettings
  let hooks: StepHooks

  /// What the facts said of a post when it was read.
  private struct Held {
    let work: PostWork
    let author: StoreKey
    /// Nil: not published here.
    let at: Int64?
    let isDeleted: Bool
    let former: [Int64]

    var live: Placed? {
      guard let at, !isDeleted else { return nil }
      return Placed(work: work, author: author, at: at)
    }

    /// Under which times feeds may hold the post where it no longer belongs.
    var gone: [Placed] {
      var times = former.filter { $0 != at }
      if isDeleted, let at { times.append(at) }
      return times.map { Placed(work: work, author: author, at: $0) }
    }
  }

  /// A post under one time.
  struct Placed {
    let work: PostWork
    let author: StoreKey
    let at: Int64
  }

  /// - Parameters:
  ///   - work: posts; unknown ones are passed over.
  ///   - keys: the followers whose feeds are meant.
  ///   - limit: of these, only so many with the lowest keys, for each post; nil: all.
  ///   - ownFeeds: whether the authors' own feeds are meant too.
  ///   - deliveries: is increased by the feed rows that were new.
  /// - Returns: the owners whose feeds may want trimming or refilling.
  func sync(
    _ work: [PostWork], keys: ClosedRange<StoreKey>, limit: Int? = nil, ownFeeds: Bool, deliveries: inout Int
  ) throws(StoreError) -> Set<StoreKey> {
    var unsettled = Set<StoreKey>()
    var held = try read(work)
    while !held.isEmpty {
      hooks.reached?(.factsRead)
      let live = held.compactMap(\.live)
      try deliver(live, keys: keys, limit: limit, ownFeeds: ownFeeds, &deliveries)
      try retract(held.map(\.gone), keys: keys, limit: limit, ownFeeds: ownFeeds, unsettled: &unsettled)
      hooks.reached?(.committedNotChecked)
      try unsettled.formUnion(sampledOwners(live, keys: keys, ownFeeds: ownFeeds))
      guard hooks.checksAfterCommit else { break }
      try takeBack(live, keys: keys, unsettled: &unsettled, &deliveries)
      held = try changed(since: held)
    }
    return unsettled
  }

  private func read(_ work: [PostWork]) throws(StoreError) -> [Held] {
    try database.query(
      database.choose(Self.read, onCitus: Citus.readPosts), .keys(work) { $0.key }, .flags(work) { $0.alongEdges }
    ).map { row in
      Held(
        work: PostWork(key: row.key(0), alongEdges: row.flag(5)), author: row.key(1),
        at: row.isNull(2) ? nil : row.integer(2), isDeleted: row.flag(3), former: row.integers(4))
    }
  }

  /// The posts that are not any more as they were read, as they are now.
  private func changed(since held: [Held]) throws(StoreError) -> [Held] {
    var before: [StoreKey: Held] = [:]
    for post in held { before[post.work.key] = post }
    return try read(held.map(\.work)).filter { now in
      before[now.work.key].map { $0.at != now.at || $0.isDeleted != now.isDeleted } ?? true
    }
  }

  private func deliver(
    _ posts: [Placed], keys: ClosedRange<StoreKey>, limit: Int?, ownFeeds: Bool, _ deliveries: inout Int
  ) throws(StoreError) {
    if posts.isEmpty { return }
    if database.isDistributed {
      deliveries += try deliverOnCitus(posts, keys: keys, limit: limit, ownFeeds: ownFeeds)
      return
    }
    deliveries += try database.alone(hooks) { () throws(StoreError) in
      try database.change(
        Self.deliver, .keys(posts) { $0.work.key }, .integers(posts) { $0.at }, .keys(posts) { $0.author },
        .flags(posts) { $0.work.alongEdges }, .key(keys.lowerBound), .key(keys.upperBound),
        .flag(ownFeeds && settings.includesOwnPosts), .integer(limit))
    }
  }

  /// - Parameter gone: for each post the times under which it must go.
  private func retract(
    _ gone: [[Placed]], keys: ClosedRange<StoreKey>, limit: Int?, ownFeeds: Bool,
    unsettled: inout Set<StoreKey>
  ) throws(StoreError) {
    // One time of each post in a transaction, so that it is never larger than that of a delivery.
    for round in 0..<(gone.map(\.count).max() ?? 0) {
      let share = gone.compactMap { round < $0.count ? $0[round] : nil }
      if database.isDistributed {
        try removeOnCitus(share, keys: keys, limit: limit, ownFeeds: ownFeeds)
        continue
      }
      _ = try database.alone(hooks) { () throws(StoreError) in
        try database.query(
          Self.retract, .keys(share) { $0.work.key }, .integers(share) { $0.at }, .keys(share) { $0.author },
          .flags(share) { $0.work.alongEdges }, .key(keys.lowerBound), .key(keys.upperBound), .flag(ownFeeds),
          .integer(limit))
      }
    }
    let all = gone.flatMap { $0 }
    if all.isEmpty { return }
    // After the rows: a feed that is counted in between, with rows that are about to go, is counted once more.
    let trims = try countOff(all, keys: keys, limit: limit, ownFeeds: ownFeeds)
    unsettled.formUnion(trims.filter { $0.spare < 0 }.map(\.owner))
  }

  private func countOff(
    _ gone: [Placed], keys: ClosedRange<StoreKey>, limit: Int?, ownFeeds: Bool
  ) throws(StoreError) -> [(owner: StoreKey, spare: Int64)] {
    if database.isDistributed { return try countOffOnCitus(gone, keys: keys, limit: limit, ownFeeds: ownFeeds) }
    return try database.query(
      Self.retractSpare, .keys(gone) { $0.work.key }, .integers(gone) { $0.at }, .keys(gone) { $0.author },
      .flags(gone) { $0.work.alongEdges }, .key(keys.lowerBound), .key(keys.upperBound), .flag(ownFeeds),
      .integer(limit)
    ).map { (owner: $0.key(0), spare: $0.integer(1)) }
  }

  /// Looks for rows that were delivered to somebody who had left by the time they were committed.
  private func takeBack(
    _ posts: [Placed], keys: ClosedRange<StoreKey>, unsettled: inout Set<StoreKey>, _ deliveries: inout Int
  ) throws(StoreError) {
    let shared = posts.filter(\.work.alongEdges)
    if shared.isEmpty { return }
    let left = try database.query(
      database.choose(Self.left, onCitus: Citus.left), .keys(shared) { $0.work.key }, .integers(shared) { $0.at },
      .keys(shared) { $0.author },
      .key(keys.lowerBound), .key(keys.upperBound)
    ).map { FollowEdge(actor: $0.key(0), subject: $0.key(1)) }
    if left.isEmpty { return }
    try unsettled.formUnion(
      EdgeSync(database: database, settings: settings, hooks: hooks).sync(left.sorted(), deliveries: &deliveries))
  }

  /// The owners who fell into the cell of key space that was drawn for a post.
  private func sampledOwners(
    _ posts: [Placed], keys: ClosedRange<StoreKey>, ownFeeds: Bool
  ) throws(StoreError) -> Set<StoreKey> {
    var sampled = Set<StoreKey>()
    var draws: [(author: StoreKey, keys: ClosedRange<StoreKey>)] = []
    for post in posts {
      let cell = settings.sampledCell()
      if ownFeeds, cell.contains(post.author) { sampled.insert(post.author) }
      if post.work.alongEdges, cell.overlaps(keys) { draws.append((post.author, cell.clamped(to: keys))) }
    }
    if draws.isEmpty { return sampled }
    let owners = try database.query(
      database.choose(Self.sampledOwners, onCitus: Citus.sampledOwners), .keys(draws) { $0.author },
      .keys(draws) { $0.keys.lowerBound },
      .keys(draws) { $0.keys.upperBound })
    return sampled.union(owners.map { $0.key(0) })
  }
}

extension PostSync {
  private static let read = """
    SELECT p.key, p.author, p.at, p.deleted, p.former, w.shared
    FROM unnest($1::uuid[], $2::boolean[]) w(key, shared) JOIN post p ON p.key = w.key
    """

  // Joins go from the few posts at hand to the many rows. OFFSET 0, or a limit, keeps a LATERAL query whole, so that the planner
  // can't begin with the edges of everybody, which it believes to be few. Rows are sorted by the feed's key, so that neighbours go to the
  // same page and locks have one order.

  /// $1 to $4: posts, their times, authors, and whether along edges. $5 and $6: the range of followers. $7: own feeds too.
  /// $8: how many followers at most.
  private static let posts =
    "unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::boolean[]) w(post, at, author, shared)"

  /// Who of a range has a follow edge to `w.author`.
  private static func followers(
    _ low: String, _ high: String, _ condition: String, _ whole: String = "OFFSET 0"
  ) -> String {
    """
    SELECT actor FROM edge WHERE kind = 0 AND subject = w.author AND actor BETWEEN \(low) AND \(high) AND \(condition)
    \(whole)
    """
  }

  private static let lowest = "ORDER BY actor LIMIT $8::bigint"

  /// Rows older than a horizon are delivered too: to know that a horizon stays, the feed would have to be locked.
  private static let deliver = """
    INSERT INTO feed_row(owner, at, post)
    SELECT e.actor, w.at, w.post FROM \(posts)
      CROSS JOIN LATERAL (\(followers("$5::uuid", "$6::uuid", "state < 2", lowest))) e WHERE w.shared
    UNION ALL
    SELECT w.author, w.at, w.post FROM \(posts) WHERE $7::boolean
    ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING
    """

  /// Everybody who has or had an edge to the author, and the author (SPEC 6: "present or absent").
  private static let holders = """
    SELECT e.actor AS owner, w.at, w.post FROM \(posts)
      CROSS JOIN LATERAL (\(followers("$5::uuid", "$6::uuid", "true", lowest))) e WHERE w.shared
    UNION ALL
    SELECT w.author, w.at, w.post FROM \(posts) WHERE $7::boolean
    """

  private static let retract = """
    WITH held AS MATERIALIZED (
      SELECT f.owner, f.at, f.post FROM (\(holders)) h
        JOIN feed_row f ON f.owner = h.owner AND f.at = h.at AND f.post = h.post
        ORDER BY 1, 2, 3 FOR UPDATE OF f)
    DELETE FROM feed_row f USING held h WHERE f.owner = h.owner AND f.at = h.at AND f.post = h.post
    """

  /// Counts a removal for every trimmed feed that may have lost a row, whether it had the row or not: too many only means that
  /// the feed is looked at sooner, and a repetition after a crash can't tell.
  private static let retractSpare = """
    WITH lost AS MATERIALIZED (SELECT owner, count(*) AS rows FROM (\(holders)) h GROUP BY owner),
    held AS MATERIALIZED (
      SELECT t.owner, l.rows FROM lost l JOIN feed_trim t ON t.owner = l.owner ORDER BY t.owner FOR UPDATE OF t)
    UPDATE feed_trim t SET spare = t.spare - h.rows FROM held h WHERE t.owner = h.owner RETURNING t.owner, t.spare
    """

  /// $1 to $3: posts, their times and authors. $4 and $5: the range of followers.
  private static let left = """
    SELECT DISTINCT e.actor, w.author FROM unnest($1::uuid[], $2::bigint[], $3::uuid[]) w(post, at, author)
      CROSS JOIN LATERAL (\(followers("$4::uuid", "$5::uuid", "state = 2"))) e
      JOIN feed_row f ON f.owner = e.actor AND f.at = w.at AND f.post = w.post
    """

  private static let sampledOwners = """
    SELECT DISTINCT e.actor FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) w(author, low, high)
      CROSS JOIN LATERAL (\(followers("w.low", "w.high", "state < 2"))) e
    """
}
