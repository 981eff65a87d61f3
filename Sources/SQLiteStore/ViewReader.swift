internal import FanoutStore
internal import SocialEvents

/// Reads the views (SPEC 5). Whatever clean-up is still under way, it shows nothing whose post is deleted or whose edge is absent.
struct ViewReader {
  let database: Connection
  let settings: StoreSettings

  // MARK: Relations

  func relation(
    _ relation: Relation, of subject: Subject, after: Subject?, limit: Int
  ) throws(StoreError) -> [Subject] {
    let byActor = relation.isByActor
    let select = try database.statement(
      """
      SELECT actor_id, recipient_id, post_id \(Self.shown(byActor: byActor)) AND \(byActor ? "subject" : "actor") > ?3
      ORDER BY \(byActor ? "subject" : "actor") LIMIT ?4
      """)
    bind(select, relation, subject)
    select.bind(3, after?.key ?? .lowest)
    select.bind(4, max(0, limit))
    return try select.rows { () -> Subject in
      if !byActor { return .user(select.user(0)) }
      if select.isNull(2) { return .user(select.user(1)) }
      return .post(Post(author: select.user(1), id: PostID(unchecked: select.text(2))))
    }
  }

  func count(_ relation: Relation, of subject: Subject) throws(StoreError) -> Int {
    let select = try database.statement("SELECT count(*) \(Self.shown(byActor: relation.isByActor))")
    bind(select, relation, subject)
    return Int(try select.first { select.integer(0) } ?? 0)
  }

  private func bind(_ select: Statement, _ relation: Relation, _ subject: Subject) {
    select.bind(1, Int(relation.kind.rawValue))
    select.bind(2, subject.key)
  }

  /// The present edges of kind ?1 at one end of which ?2 stands, without those on deleted posts.
  private static func shown(byActor: Bool) -> String {
    """
    FROM edge\(byActor ? "" : " INDEXED BY edge_by_subject") WHERE kind = ?1 AND \(byActor ? "actor" : "subject") = ?2
      AND state < 2 AND \(notDeleted)
    """
  }

  /// Users have no row in `post`, since no user's key is a post's, so this asks follows nothing.
  private static let notDeleted = "NOT EXISTS (SELECT 1 FROM post p WHERE p.key = edge.subject AND p.deleted)"

  // MARK: Feed

  func feed(of user: UserID, after: FeedItem?, limit: Int) throws(StoreError) -> [FeedItem] {
    let owner = StoreKey(user)
    let select = try database.statement(Self.feed)
    select.bind(1, owner)
    select.bind(2, settings.includesOwnPosts ? 1 : 0)
    select.bind(3, try horizon(of: owner))
    select.bind(4, settings.feedLimit)
    select.bind(5, max(0, limit))
    select.bind(6, after?.publishedAt.microseconds ?? .max)
    select.bind(7, after?.post.author.string ?? "")
    select.bind(8, after?.post.id.string ?? "")
    return try select.rows {
      FeedItem(
        publishedAt: select.timestamp(0), post: Post(author: select.user(1), id: PostID(unchecked: select.text(2))))
    }
  }

  private func horizon(of owner: StoreKey) throws(StoreError) -> Int64 {
    let select = try database.statement("SELECT horizon FROM feed_trim WHERE owner = ?1")
    select.bind(1, owner)
    return try select.first { select.integer(0) } ?? FeedTrimmer.beginning
  }

  /// The newest ?4 of all pages, of which the page of ?5 after the item (?6, ?7, ?8).
  private static let feed = """
    SELECT at, author_id, post_id FROM (
      SELECT f.at AS at, p.author_id AS author_id, p.post_id AS post_id
      FROM feed f CROSS JOIN post p ON p.key = f.post AND p.at = f.at AND NOT p.deleted
      WHERE f.owner = ?1 AND f.at >= ?3
        AND CASE WHEN p.author = ?1 THEN ?2 ELSE EXISTS (
          SELECT 1 FROM edge e WHERE e.kind = 0 AND e.actor = ?1 AND e.subject = p.author AND e.state < 2) END
      ORDER BY f.at DESC, p.author_id DESC, p.post_id DESC LIMIT ?4)
    WHERE (at, author_id, post_id) < (?6, ?7, ?8) LIMIT ?5
    """

  // MARK: Feedback

  func feedback(of user: UserID, after: FeedbackPosition?, limit: Int) throws(StoreError) -> [FeedbackEntry] {
    let key = StoreKey(user)
    let seen = try seenUpTo(key)
    let select = try database.statement(
      """
      SELECT kind, actor, subject, time, event, extra, actor_id, post_id FROM edge INDEXED BY edge_feedback
      WHERE recipient = ?1 AND state = 0 AND actor <> recipient
        AND (time, kind, actor, subject) < (?2, ?3, ?4, ?5) AND \(Self.notDeleted)
      ORDER BY time DESC, kind DESC, actor DESC, subject DESC LIMIT ?6
      """)
    select.bind(1, key)
    select.bind(2, after?.time.microseconds ?? .max)
    select.bind(3, after.map { Int($0.kind.rawValue) } ?? .max)
    select.bind(4, after?.actor ?? .highest)
    select.bind(5, after?.subject ?? .highest)
    select.bind(6, max(0, limit))
    return try select.rows {
      let kind = EdgeKind(rawValue: UInt8(truncatingIfNeeded: select.integer(0))) ?? .follow
      let time = select.timestamp(3)
      return FeedbackEntry(
        edge: Edge(
          kind: kind, actor: select.user(6), recipient: user,
          post: select.isNull(7) ? nil : PostID(unchecked: select.text(7))),
        time: time, event: EventID(unchecked: select.text(4)), extra: select.isNull(5) ? nil : select.text(5),
        isSeen: seen.map { time <= $0 } ?? false,
        position: FeedbackPosition(time: time, kind: kind, actor: select.key(1), subject: select.key(2)))
    }
  }

  func unreadCount(of user: UserID) throws(StoreError) -> Int {
    let key = StoreKey(user)
    let select = try database.statement(
      """
      SELECT count(*) FROM edge INDEXED BY edge_feedback
      WHERE recipient = ?1 AND state = 0 AND actor <> recipient AND time > ?2 AND \(Self.notDeleted)
      """)
    select.bind(1, key)
    select.bind(2, try seenUpTo(key)?.microseconds ?? FeedTrimmer.beginning)
    return Int(try select.first { select.integer(0) } ?? 0)
  }

  private func seenUpTo(_ user: StoreKey) throws(StoreError) -> Timestamp? {
    let select = try database.statement("SELECT up_to FROM seen WHERE user = ?1")
    select.bind(1, user)
    return try select.first { select.timestamp(0) }
  }

  // MARK: Export

  func export(_ body: (ViewRow) throws -> Void) throws {
    let edges = try database.statement(
      "SELECT kind, actor_id, recipient_id, post_id FROM edge WHERE state < 2 AND \(Self.notDeleted)")
    try edges.forEachRow {
      let kind = EdgeKind(rawValue: UInt8(truncatingIfNeeded: edges.integer(0))) ?? .follow
      let post = edges.isNull(3) ? nil : PostID(unchecked: edges.text(3))
      try body(.edge(Edge(kind: kind, actor: edges.user(1), recipient: edges.user(2), post: post)))
    }
    try forEachOwner(of: "feed", column: "owner") { owner in
      guard let user = try nameOfOwner(owner) else { return }
      for item in try feed(of: user, after: nil, limit: settings.feedLimit) { try body(.feed(of: user, item)) }
    }
    let name = try database.statement(
      "SELECT recipient_id FROM edge INDEXED BY edge_feedback WHERE recipient = ?1 AND state = 0 AND actor <> recipient LIMIT 1"
    )
    try forEachOwner(
      of: "edge INDEXED BY edge_feedback", column: "recipient", where: "state = 0 AND actor <> recipient"
    ) { key in
      name.bind(1, key)
      guard let user = try name.first({ name.user(0) }) else { return }
      var last: FeedbackPosition?
      repeat {
        let page = try feedback(of: user, after: last, limit: 1000)
        for entry in page { try body(.feedback(of: user, entry)) }
        last = page.last?.position
      } while last != nil
    }
  }

  /// Calls `body` for each distinct key at the head of an index, by one look-up for each instead of a scan.
  private func forEachOwner(
    of table: String, column: String, where condition: String = "1", _ body: (StoreKey) throws -> Void
  ) throws {
    let next = try database.statement(
      "SELECT \(column) FROM \(table) WHERE \(column) > ?1 AND \(condition) ORDER BY \(column) LIMIT 1")
    var last = StoreKey.lowest
    while true {
      next.bind(1, last)
      guard let key = try next.first({ next.key(0) }) else { return }
      try body(key)
      last = key
    }
  }

  /// A feed row names its owner by key; the string is in an edge that the owner made, or in a post of theirs.
  private func nameOfOwner(_ owner: StoreKey) throws(StoreError) -> UserID? {
    let follower = try database.statement("SELECT actor_id FROM edge WHERE kind = 0 AND actor = ?1 LIMIT 1")
    follower.bind(1, owner)
    if let user = try follower.first({ follower.user(0) }) { return user }
    let author = try database.statement(
      """
      SELECT author_id FROM post INDEXED BY post_live WHERE author = ?1 AND deleted = 0 AND at IS NOT NULL LIMIT 1
      """)
    author.bind(1, owner)
    return try author.first { author.user(0) }
  }
}
