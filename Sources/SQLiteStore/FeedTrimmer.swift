internal import FanoutStore
internal import SocialEvents

/// Keeps feeds within a constant factor of the feed limit without ever hiding a row that belongs to the newest (SPEC 5).
///
/// A trimmed feed has a horizon: all that belongs in the feed at or after it is there, and at least `feedLimit` rows are. Rows
/// go when twice the limit is exceeded, down to one and a half times; when removals may have left fewer than the limit, the
/// feed is refilled from the facts. A feed that was never trimmed has no horizon and is complete.
struct FeedTrimmer {
  let database: Connection
  let settings: StoreSettings

  /// Earlier than every time that an event may have.
  static let beginning: Int64 = -1

  private var limit: Int { settings.feedLimit }
  private var kept: Int { limit + (limit + 1) / 2 }

  /// Trims and refills the feeds that want it, a few in a transaction.
  func settle(_ owners: [StoreKey]) throws(StoreError) {
    var rest = owners[...]
    while !rest.isEmpty {
      let share = rest.prefix(100)
      rest = rest.dropFirst(share.count)
      // Most feeds want nothing: find out without the write lock.
      let wanting = try wanting(share)
      if wanting.isEmpty { continue }
      try database.write { () throws(StoreError) in
        for owner in wanting { try settle(owner) }
      }
    }
  }

  private func wanting(_ owners: ArraySlice<StoreKey>) throws(StoreError) -> [StoreKey] {
    try database.beginReading()
    defer { database.endReading() }
    var wanting: [StoreKey] = []
    for owner in owners where try wants(owner) { wanting.append(owner) }
    return wanting
  }

  private func wants(_ owner: StoreKey) throws(StoreError) -> Bool {
    if let trim = try horizon(of: owner), trim.spare < 0 { return true }
    return try time(of: owner, atRank: 2 * limit) != nil
  }

  private func settle(_ owner: StoreKey) throws(StoreError) {
    if let trim = try horizon(of: owner), trim.spare < 0 {
      let rows = try count(owner, from: trim.horizon)
      if rows < limit {
        try refill(owner, before: trim.horizon, having: rows)
      } else {
        try set(owner, horizon: trim.horizon, rows: rows)
      }
    }
    if try time(of: owner, atRank: 2 * limit) != nil { try trim(owner) }
  }

  /// Removes what lies beyond one and a half times the limit. Rows of one time stay or go together, so that the horizon is a time.
  private func trim(_ owner: StoreKey) throws(StoreError) {
    guard let last = try time(of: owner, atRank: kept - 1) else { return }
    let horizon = max(last, try horizon(of: owner)?.horizon ?? Self.beginning)
    let delete = try database.statement("DELETE FROM feed WHERE owner = ?1 AND at < ?2")
    delete.bind(1, owner)
    delete.bind(2, horizon)
    try delete.run()
    let rows = try count(owner, from: horizon)
    if rows < limit {
      try refill(owner, before: horizon, having: rows)
    } else {
      try set(owner, horizon: horizon, rows: rows)
    }
  }

  /// Takes older posts from the facts, until there are one and a half times the limit or no more.
  private func refill(_ owner: StoreKey, before horizon: Int64, having rows: Int) throws(StoreError) {
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
      span = span.multipliedReportingOverflow(by: 4).partialValue
      if span <= 0 { break }
    }
    if low == Self.beginning, let found = try candidate(owner, from: low, before: horizon, rank: wanted - 1) {
      low = found
    }

    let insert = try database.statement("INSERT OR IGNORE INTO feed(owner, at, post) \(Self.belonging) ORDER BY 2, 3")
    bind(insert, owner, from: low, before: horizon)
    try insert.run()
    if low == Self.beginning {
      // Nothing is older: the feed is complete, and no longer a trimmed one.
      let forget = try database.statement("DELETE FROM feed_trim WHERE owner = ?1")
      forget.bind(1, owner)
      try forget.run()
    } else {
      try set(owner, horizon: low, rows: try count(owner, from: low))
    }
  }

  // MARK: Statements

  /// What belongs in the feed of ?1 at or after ?2 and before ?3. ?4: own posts too.
  private static let belonging = """
    SELECT ?1, p.at, p.key FROM edge e CROSS JOIN post p INDEXED BY post_live
      ON p.author = e.subject AND p.at >= ?2 AND p.at < ?3 AND p.deleted = 0 AND p.at IS NOT NULL
      WHERE e.kind = 0 AND e.actor = ?1 AND e.state < 2
    UNION ALL
    SELECT ?1, p.at, p.key FROM post p INDEXED BY post_live
      WHERE ?4 AND p.author = ?1 AND p.at >= ?2 AND p.at < ?3 AND p.deleted = 0 AND p.at IS NOT NULL
    """

  private func bind(_ statement: Statement, _ owner: StoreKey, from low: Int64, before high: Int64) {
    statement.bind(1, owner)
    statement.bind(2, low)
    statement.bind(3, high)
    statement.bind(4, settings.includesOwnPosts ? 1 : 0)
  }

  /// The time of the post with a rank, counted from the newest as 0, among those that belong in the feed.
  private func candidate(
    _ owner: StoreKey, from low: Int64, before high: Int64, rank: Int
  ) throws(StoreError) -> Int64? {
    let select = try database.statement("SELECT at FROM (\(Self.belonging)) ORDER BY at DESC LIMIT 1 OFFSET ?5")
    bind(select, owner, from: low, before: high)
    select.bind(5, rank)
    return try select.first { select.integer(0) }
  }

  private func time(of owner: StoreKey, atRank rank: Int) throws(StoreError) -> Int64? {
    let select = try database.statement("SELECT at FROM feed WHERE owner = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2")
    select.bind(1, owner)
    select.bind(2, rank)
    return try select.first { select.integer(0) }
  }

  private func count(_ owner: StoreKey, from horizon: Int64) throws(StoreError) -> Int {
    let select = try database.statement("SELECT count(*) FROM feed WHERE owner = ?1 AND at >= ?2")
    select.bind(1, owner)
    select.bind(2, horizon)
    return Int(try select.first { select.integer(0) } ?? 0)
  }

  private func horizon(of owner: StoreKey) throws(StoreError) -> (horizon: Int64, spare: Int64)? {
    let select = try database.statement("SELECT horizon, spare FROM feed_trim WHERE owner = ?1")
    select.bind(1, owner)
    return try select.first { (select.integer(0), select.integer(1)) }
  }

  private func set(_ owner: StoreKey, horizon: Int64, rows: Int) throws(StoreError) {
    let upsert = try database.statement(
      """
      INSERT INTO feed_trim(owner, horizon, spare) VALUES(?1, ?2, ?3)
      ON CONFLICT(owner) DO UPDATE SET horizon = excluded.horizon, spare = excluded.spare
      """)
    upsert.bind(1, owner)
    upsert.bind(2, horizon)
    upsert.bind(3, rows - limit)
    try upsert.run()
  }
}
