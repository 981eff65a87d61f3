internal import FanoutStore
internal import SocialEvents

/// Reads everything that readers are shown, page by page, so that memory does not grow with the store.
struct ViewExport {
  let database: Connection
  let settings: StoreSettings

  private static let edgesPerPage = 5000
  /// Their feeds are read at once, each up to the feed limit.
  private static let feedRowsPerPage = 20_000

  func run(_ body: (ViewRow) throws -> Void) throws {
    // All pages are of one moment. No moment spans the nodes of a Citus cluster.
    try database.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    defer { if !database.isLost { _ = try? database.execute("ROLLBACK") } }
    try edges(body)
    try feeds(body)
  }

  /// Edges, and the feedback entries that they are.
  private func edges(_ body: (ViewRow) throws -> Void) throws {
    var kind: Int64 = -1
    var actor = StoreKey.lowest
    var subject = StoreKey.lowest
    while true {
      let page = try database.query(
        database.choose(Self.edges, onCitus: Citus.exportedEdges), .integer(kind), .key(actor), .key(subject),
        .integer(Self.edgesPerPage))
      for row in page.map({ $0 }) {
        (kind, actor, subject) = (row.integer(0), row.key(1), row.key(2))
        if row.flag(11) { try show(row, body) }
      }
      if page.count < Self.edgesPerPage { return }
    }
  }

  private func show(_ row: Row, _ body: (ViewRow) throws -> Void) throws {
    let kind = EdgeKind(rawValue: UInt8(truncatingIfNeeded: row.integer(0))) ?? .follow
    let edge = Edge(
      kind: kind, actor: row.user(3), recipient: row.user(4),
      post: row.isNull(5) ? nil : PostID(unchecked: row.text(5)))
    try body(.edge(edge))
    guard row.integer(6) == 0, row.flag(12) else { return }
    let time = row.timestamp(7)
    try body(
      .feedback(
        of: edge.recipient,
        FeedbackEntry(
          edge: edge, time: time, event: EventID(unchecked: row.text(8)), extra: row.isNull(9) ? nil : row.text(9),
          isSeen: row.flag(10),
          position: FeedbackPosition(time: time, kind: kind, actor: row.key(1), subject: row.key(2)))))
  }

  private func feeds(_ body: (ViewRow) throws -> Void) throws {
    let ownersPerPage = max(1, Self.feedRowsPerPage / settings.feedLimit)
    var last = StoreKey.lowest
    while true {
      let owners = try database.query(
        database.choose(Self.owners, onCitus: Citus.owners), .key(last), .integer(ownersPerPage)
      ).map { $0.key(0) }
      guard let end = owners.last else { return }
      last = end
      if database.isDistributed {
        try feedsOnCitus(of: owners, body)
        continue
      }
      let items = try database.query(
        Self.items, .keys(owners), .flag(settings.includesOwnPosts), .integer(settings.feedLimit))
      for row in items.map({ $0 }) {
        let item = FeedItem(
          publishedAt: row.timestamp(1), post: Post(author: row.user(2), id: PostID(unchecked: row.text(3))))
        try body(.feed(of: row.user(0), item))
      }
    }
  }

  private static let edges = """
    SELECT e.kind, e.actor, e.subject, e.actor_id, e.recipient_id, e.post_id, e.state, e.time, e.event, e.extra,
      e.time <= coalesce((SELECT s.up_to FROM seen s WHERE s.owner = e.recipient), \(FeedTrimmer.beginning)),
      e.state < 2 AND \(ViewReader.notDeleted), e.actor <> e.recipient
    FROM edge e WHERE (e.kind, e.actor, e.subject) > ($1::bigint::int, $2::uuid, $3::uuid)
    ORDER BY e.kind, e.actor, e.subject LIMIT $4::bigint
    """

  /// The next $2 owners after $1, by one look-up for each instead of a scan.
  private static let owners = """
    WITH RECURSIVE next(owner) AS (
      (SELECT f.owner FROM feed_row f WHERE f.owner > $1::uuid ORDER BY f.owner LIMIT 1)
      UNION ALL
      SELECT (SELECT f.owner FROM feed_row f WHERE f.owner > n.owner ORDER BY f.owner LIMIT 1) FROM next n
        WHERE n.owner IS NOT NULL)
    SELECT owner FROM next WHERE owner IS NOT NULL LIMIT $2::bigint
    """

  /// A feed row names its owner by key; the string is in an edge that the owner made, or in a post of theirs.
  private static let items = """
    SELECT coalesce(
        (SELECT e.actor_id FROM edge e WHERE e.kind = 0 AND e.actor = o.owner LIMIT 1),
        (SELECT p.author_id FROM post p WHERE p.author = o.owner AND NOT p.deleted AND p.at IS NOT NULL LIMIT 1)),
      i.at, i.author_id, i.post_id
    FROM unnest($1::uuid[]) o(owner)
      CROSS JOIN LATERAL (\(ViewReader.newest(owner: "o.owner", ownPosts: "$2::boolean", limit: "$3::bigint"))) i
    """
}
