internal import FanoutStore

/// Keeps feeds within a constant factor of the feed limit without ever hiding a row that belongs to the newest (SPEC 5).
///
/// A trimmed feed has a horizon: all that belongs in the feed at or after it is there, and at least `feedLimit` rows are. Rows
/// go when twice the limit is exceeded, down to one and a half times; when removals may have left fewer than the limit, the
/// feed is refilled from the facts. A feed that was never trimmed has no horizon and is complete.
///
/// Whoever moves a horizon holds the lock of the owner's row in `feed_trim`. The row is there, committed, before the feed is
/// counted for the first time: so whoever removes rows, and counts them off afterwards, finds it.
struct FeedTrimmer {
  let database: Connection
  let settings: StoreSettings
  let hooks: StepHooks

  /// Earlier than every time that an event may have: the horizon of a complete feed.
  static let beginning: Int64 = -1

  private var limit: Int { settings.feedLimit }
  private var kept: Int { limit + (limit + 1) / 2 }

  /// Trims and refills the feeds that want it, one in a transaction.
  func settle(_ owners: Set<StoreKey>) throws(StoreError) {
    if owners.isEmpty { return }
    // Most feeds want nothing: find out without a lock.
    for owner in try wanting(owners.sorted(), most: 2 * limit) { try settle(owner) }
  }

  private func wanting(_ owners: [StoreKey], most: Int) throws(StoreError) -> [StoreKey] {
    if database.isDistributed { return try wantingOnCitus(owners, most: most) }
    return try database.query(Self.wanting, .keys(owners), .integer(most)).map { $0.key(0) }
  }

  private enum Move {
    case done
    /// There is no row to lock.
    case unknown
    case counted
    case trimmed
    case refilled([Item])
  }

  /// A row of a feed.
  struct Item: Hashable {
    let at: Int64
    let post: StoreKey
  }

  /// Makes one move in a transaction until there is nothing more to do.
  private func settle(_ owner: StoreKey) throws(StoreError) {
    var mayTrim = true
    while true {
      let made = try database.transaction { () throws(StoreError) in try move(owner, mayTrim: mayTrim) }
      switch made {
      case .done: return
      case .unknown:
        try database.change(
          "INSERT INTO feed_trim(owner, horizon, spare) VALUES($1::uuid, $2::bigint, 0) ON CONFLICT DO NOTHING",
          .key(owner), .integer(Self.beginning))
      case .counted: break
      // Once: rows of one time stay together, so there may still be too many.
      case .trimmed: mayTrim = false
      case .refilled(let items):
        hooks.reached?(.committedNotChecked)
        if hooks.checksAfterCommit { try takeBack(items, from: owner) }
      }
    }
  }

  private func move(_ owner: StoreKey, mayTrim: Bool) throws(StoreError) -> Move {
    let found = try database.query(
      "SELECT horizon, spare FROM feed_trim WHERE owner = $1::uuid FOR UPDATE", .key(owner)
    ).first.map { (horizon: $0.integer(0), spare: $0.integer(1)) }
    guard let trim = found else { return try time(of: owner, atRank: 2 * limit) == nil ? .done : .unknown }
    if trim.spare < 0 && trim.horizon > Self.beginning {
      let rows = try countShown(owner, from: trim.horizon)
      if rows < limit { return .refilled(try refill(owner, before: trim.horizon, having: rows)) }
      try set(owner, horizon: trim.horizon, spare: rows - limit)
      return .counted
    }
    guard mayTrim, try time(of: owner, atRank: 2 * limit) != nil else { return .done }
    try self.trim(owner, horizon: trim.horizon)
    return .trimmed
  }

  /// Removes what lies beyond one and a half times the limit. Rows of one time stay or go together, so that the horizon is a
  /// time.
  private func trim(_ owner: StoreKey, horizon: Int64) throws(StoreError) {
    guard let last = try time(of: owner, atRank: kept - 1) else { return }
    if last > horizon {
      let rows = try database.query(
        "SELECT count(*) FROM feed_row WHERE owner = $1::uuid AND at >= $2::bigint", .key(owner), .integer(last)
      ).first.map { Int($0.integer(0)) }
      // Counted without a look at the facts, as this is the frequent case. A few of the rows may be leftovers of writers that
      // crashed in the midst of a race, which nobody is shown; for them a quarter of the limit is set aside.
      try set(owner, horizon: last, spare: (rows ?? 0) - limit - limit / 4)
    }
    try database.query(database.choose(Self.cut, onCitus: Citus.cut), .key(owner), .integer(max(last, horizon)))
  }

  /// Takes older posts from the facts, until there are one and a half times the limit or no more.
  /// - Returns: the rows that are new.
  private func refill(_ owner: StoreKey, before horizon: Int64, having rows: Int) throws(StoreError) -> [Item] {
    let wanted = kept - rows
    // Look back over a growing span, so that what is read is in proportion to what is wanted and not to all posts ever.
    var span: Int64 = 3_600_000_000
    if let newest = try time(of: owner, atRank: 0) { span = max(span, newest - horizon) }
    var low = Self.beginning
    while true {
      let start = horizon - span
      if start <= 0 { break }
      if let found = try candidate(owner, from: start, before: horizon, rank: wanted - 1) {
        low = found
        break
      }
      let (wider, overflows) = span.multipliedReportingOverflow(by: 4)
      if overflows { break }
      span = wider
    }
    if low == Self.beginning, let found = try candidate(owner, from: low, before: horizon, rank: wanted - 1) {
      low = found
    }
    let new = try insert(into: owner, from: low, before: horizon)
    // Nothing is older than the beginning: then the feed is complete. Else it is counted next, with what has changed meanwhile.
    try set(owner, horizon: low, spare: low == Self.beginning ? 0 : -1)
    return new
  }

  private func insert(into owner: StoreKey, from low: Int64, before high: Int64) throws(StoreError) -> [Item] {
    if database.isDistributed { return try refillOnCitus(owner, from: low, before: high) }
    return try database.query(
      "INSERT INTO feed_row(owner, at, post) \(Self.belonging) ORDER BY 2, 3 ON CONFLICT DO NOTHING RETURNING at, post",
      .key(owner), .integer(low), .integer(high), .flag(settings.includesOwnPosts)
    ).map { Item(at: $0.integer(0), post: $0.key(1)) }
  }

  /// Removes those of the rows that a refill brought which did not belong there any more when they were committed.
  ///
  /// They might belong there again by the time they are removed. So all of the feed that is not newer counts as missing
  /// afterwards, and is refilled once more.
  private func takeBack(_ items: [Item], from owner: StoreKey) throws(StoreError) {
    if items.isEmpty { return }
    let gone = try notShown(items, in: owner)
    guard let newest = gone.map(\.at).max() else { return }
    try database.transaction { () throws(StoreError) in
      try database.change(
        """
        UPDATE feed_trim SET horizon = greatest(horizon, $2::bigint), spare = -1 WHERE owner = $1::uuid
        """, .key(owner), .integer(newest + 1))
      try database.query(
        database.choose(Self.remove, onCitus: Citus.removeFromFeed), .key(owner), .integers(gone) { $0.at },
        .keys(gone) { $0.post })
    }
  }

  private func notShown(_ items: [Item], in owner: StoreKey) throws(StoreError) -> [Item] {
    if database.isDistributed { return try notShownOnCitus(items, in: owner) }
    return try database.query(
      Self.notShown, .key(owner), .integers(items) { $0.at }, .keys(items) { $0.post }, .flag(settings.includesOwnPosts)
    ).map { Item(at: $0.integer(0), post: $0.key(1)) }
  }

  // MARK: Look-ups

  /// The time of the post with a rank, counted from the newest as 0, among those that belong in the feed.
  private func candidate(
    _ owner: StoreKey, from low: Int64, before high: Int64, rank: Int
  ) throws(StoreError) -> Int64? {
    if database.isDistributed { return try candidateOnCitus(owner, from: low, before: high, rank: rank) }
    return try database.query(
      "SELECT at FROM (\(Self.belonging)) candidates ORDER BY at DESC LIMIT 1 OFFSET $5::bigint",
      .key(owner), .integer(low), .integer(high), .flag(settings.includesOwnPosts), .integer(rank)
    ).first?.integer(0)
  }

  private func time(of owner: StoreKey, atRank rank: Int) throws(StoreError) -> Int64? {
    try database.query(
      "SELECT at FROM feed_row WHERE owner = $1::uuid ORDER BY at DESC LIMIT 1 OFFSET $2::bigint", .key(owner),
      .integer(rank)
    ).first?.integer(0)
  }

  private func countShown(_ owner: StoreKey, from horizon: Int64) throws(StoreError) -> Int {
    try database.query(
      database.choose(Self.countShown, onCitus: Citus.countShown), .key(owner), .integer(horizon),
      .flag(settings.includesOwnPosts)
    ).first.map { Int($0.integer(0)) } ?? 0
  }

  private func set(_ owner: StoreKey, horizon: Int64, spare: Int) throws(StoreError) {
    try database.change(
      "UPDATE feed_trim SET horizon = $2::bigint, spare = $3::bigint WHERE owner = $1::uuid", .key(owner),
      .integer(horizon), .integer(spare))
  }
}

extension FeedTrimmer {
  private static let wanting = """
    SELECT o.owner FROM unnest($1::uuid[]) o(owner)
    WHERE EXISTS (SELECT 1 FROM feed_trim t WHERE t.owner = o.owner AND t.spare < 0 AND t.horizon > \(beginning))
      OR (SELECT f.at FROM feed_row f WHERE f.owner = o.owner ORDER BY f.at DESC LIMIT 1 OFFSET $2::bigint) IS NOT NULL
    """

  /// What belongs in the feed of $1 at or after $2 and before $3. $4: own posts too.
  private static let belonging = """
    SELECT $1::uuid AS owner, p.at, p.key FROM edge e
      CROSS JOIN LATERAL (SELECT at, key FROM post WHERE author = e.subject AND at >= $2::bigint AND at < $3::bigint
        AND NOT deleted AND at IS NOT NULL OFFSET 0) p
      WHERE e.kind = 0 AND e.actor = $1::uuid AND e.state < 2
    UNION ALL
    SELECT $1::uuid, p.at, p.key FROM post p
      WHERE $4::boolean AND p.author = $1::uuid AND p.at >= $2::bigint AND p.at < $3::bigint AND NOT p.deleted
        AND p.at IS NOT NULL
    """

  private static let countShown = """
    SELECT count(*) FROM feed_row f JOIN post p ON \(ViewReader.holds)
    WHERE f.owner = $1::uuid AND f.at >= $2::bigint AND \(ViewReader.belongs(ownPosts: "$3::boolean"))
    """

  private static let notShown = """
    SELECT i.at, i.post FROM unnest($2::bigint[], $3::uuid[]) i(at, post)
    WHERE NOT EXISTS (SELECT 1 FROM (SELECT $1::uuid AS owner, i.at, i.post) f JOIN post p ON \(ViewReader.holds)
      WHERE \(ViewReader.belongs(ownPosts: "$4::boolean")))
    """

  private static let cut = """
    WITH held AS MATERIALIZED (
      SELECT f.owner, f.at, f.post FROM feed_row f WHERE f.owner = $1::uuid AND f.at < $2::bigint
        ORDER BY 1, 2, 3 FOR UPDATE)
    DELETE FROM feed_row f USING held h WHERE f.owner = h.owner AND f.at = h.at AND f.post = h.post
    """

  private static let remove = """
    WITH held AS MATERIALIZED (
      SELECT f.owner, f.at, f.post FROM unnest($2::bigint[], $3::uuid[]) i(at, post)
        JOIN feed_row f ON f.owner = $1::uuid AND f.at = i.at AND f.post = i.post
        ORDER BY 1, 2, 3 FOR UPDATE OF f)
    DELETE FROM feed_row f USING held h WHERE f.owner = h.owner AND f.at = h.at AND f.post = h.post
    """
}
