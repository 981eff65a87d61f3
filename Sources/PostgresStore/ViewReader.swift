internal import FanoutStore
internal import SocialEvents

/// Reads the views (SPEC 5), each read by one statement and so as of one moment. Whatever clean-up is still under way, it shows
/// nothing whose post is deleted or whose edge is absent.
struct ViewReader {
  let database: Connection
  let settings: StoreSettings

  // MARK: Relations

  func relation(
    _ relation: Relation, of subject: Subject, after: Subject?, limit: Int
  ) throws(StoreError) -> [Subject] {
    let byActor = relation.isByActor
    let entry = byActor ? "subject" : "actor"
    return try database.query(
      """
      SELECT actor_id, recipient_id, post_id \(shown(byActor: byActor, place: "$5::uuid")) AND \(entry) > $3::uuid
      ORDER BY \(entry) LIMIT $4::bigint
      """,
      [
        .integer(Int(relation.kind.rawValue)), .key(subject.key), .key(after?.key ?? .lowest), .integer(max(0, limit)),
      ] + place(of: subject, byActor: byActor)
    ).map { row -> Subject in
      if !byActor { return .user(row.user(0)) }
      if row.isNull(2) { return .user(row.user(1)) }
      return .post(Post(author: row.user(1), id: PostID(unchecked: row.text(2))))
    }
  }

  func count(_ relation: Relation, of subject: Subject) throws(StoreError) -> Int {
    let byActor = relation.isByActor
    return try database.query(
      "SELECT count(*) \(shown(byActor: byActor, place: "$3::uuid"))",
      [.integer(Int(relation.kind.rawValue)), .key(subject.key)] + place(of: subject, byActor: byActor)
    ).first.map { Int($0.integer(0)) } ?? 0
  }

  /// The present edges of kind $1 at one end of which $2 stands, without those on deleted posts.
  /// - Parameter place: where distributed edges to $2 lie.
  private func shown(byActor: Bool, place: String) -> String {
    let notDeleted = database.choose(
      Self.notDeleted,
      onCitus: byActor ? Citus.notDeleted() : "\(Citus.notDeleted(author: place)) AND recipient = \(place)")
    return """
      FROM edge e WHERE kind = $1::bigint::smallint AND \(byActor ? "actor" : "subject") = $2::uuid
        AND state < 2 AND \(notDeleted)
      """
  }

  /// The parameter for `shown(byActor:place:)`, if it has one.
  private func place(of subject: Subject, byActor: Bool) -> [Parameter] {
    if byActor || !database.isDistributed { return [] }
    return switch subject {
    case .user(let user): [.key(StoreKey(user))]
    case .post(let post): [.key(StoreKey(post.author))]
    }
  }

  /// Users have no row in `post`, since no user's key is a post's, so this asks follows nothing.
  static let notDeleted = "NOT EXISTS (SELECT 1 FROM post p WHERE p.key = e.subject AND p.deleted)"

  // MARK: Feed

  func feed(of user: UserID, after: FeedItem?, limit: Int) throws(StoreError) -> [FeedItem] {
    try database.query(
      database.choose(Self.page, onCitus: Citus.page), .key(StoreKey(user)), .flag(settings.includesOwnPosts),
      .integer(settings.feedLimit),
      .integer(max(0, limit)), .integer(after?.publishedAt.microseconds ?? .max),
      .text(after?.post.author.string ?? ""), .text(after?.post.id.string ?? "")
    ).map { FeedItem($0) }
  }

  /// That the post `p` is where the feed row `f` says, and not deleted.
  static let holds = "p.key = f.post AND p.at = f.at AND NOT p.deleted"

  /// That the owner of the feed row `f` follows the author of `p`, or is the author.
  static func belongs(ownPosts: String) -> String {
    """
    CASE WHEN p.author = f.owner THEN \(ownPosts) ELSE EXISTS (
      SELECT 1 FROM edge e WHERE e.kind = 0 AND e.actor = f.owner AND e.subject = p.author AND e.state < 2) END
    """
  }

  /// The newest items of a feed, as many as readers see.
  static func newest(owner: String, ownPosts: String, limit: String) -> String {
    """
    SELECT f.at, p.author_id, p.post_id FROM feed_row f JOIN post p ON \(holds)
    WHERE f.owner = \(owner)
      AND f.at >= coalesce((SELECT t.horizon FROM feed_trim t WHERE t.owner = \(owner)), \(FeedTrimmer.beginning))
      AND \(belongs(ownPosts: ownPosts))
    ORDER BY f.at DESC, p.author_id DESC, p.post_id DESC LIMIT \(limit)
    """
  }

  /// The newest $3 of all pages, of which the page of $4 after the item ($5, $6, $7).
  private static let page = """
    SELECT at, author_id, post_id
    FROM (\(newest(owner: "$1::uuid", ownPosts: "$2::boolean", limit: "$3::bigint"))) newest
    WHERE (at, author_id, post_id) < ($5::bigint, $6::text, $7::text) LIMIT $4::bigint
    """

  // MARK: Feedback

  func feedback(of user: UserID, after: FeedbackPosition?, limit: Int) throws(StoreError) -> [FeedbackEntry] {
    try database.query(
      """
      SELECT kind, actor, subject, time, event, extra, actor_id, post_id, time <= \(Self.seen) FROM edge e
      WHERE recipient = $1::uuid AND state = 0 AND actor <> recipient
        AND (time, kind, actor, subject) < ($2::bigint, $3::bigint::int, $4::uuid, $5::uuid) AND \(notDeletedOfOwn)
      ORDER BY time DESC, kind DESC, actor DESC, subject DESC LIMIT $6::bigint
      """, .key(StoreKey(user)), .integer(after?.time.microseconds ?? .max),
      .integer(after.map { Int($0.kind.rawValue) } ?? Int(Int32.max)), .key(after?.actor ?? .highest),
      .key(after?.subject ?? .highest), .integer(max(0, limit))
    ).map { row in
      let kind = EdgeKind(rawValue: UInt8(truncatingIfNeeded: row.integer(0))) ?? .follow
      let time = row.timestamp(3)
      return FeedbackEntry(
        edge: Edge(
          kind: kind, actor: row.user(6), recipient: user, post: row.isNull(7) ? nil : PostID(unchecked: row.text(7))),
        time: time, event: EventID(unchecked: row.text(4)), extra: row.isNull(5) ? nil : row.text(5),
        isSeen: row.flag(8),
        position: FeedbackPosition(time: time, kind: kind, actor: row.key(1), subject: row.key(2)))
    }
  }

  /// `notDeleted`, where $1 is the recipient and so the author.
  private var notDeletedOfOwn: String {
    database.choose(Self.notDeleted, onCitus: Citus.notDeleted(author: "$1::uuid"))
  }

  /// Up to when the recipient $1 has seen feedback.
  private static let seen =
    "coalesce((SELECT s.up_to FROM seen s WHERE s.owner = $1::uuid), \(FeedTrimmer.beginning))"

  func unreadCount(of user: UserID) throws(StoreError) -> Int {
    try database.query(
      """
      SELECT count(*) FROM edge e WHERE recipient = $1::uuid AND state = 0 AND actor <> recipient AND time > \(Self.seen)
        AND \(notDeletedOfOwn)
      """, .key(StoreKey(user))
    ).first.map { Int($0.integer(0)) } ?? 0
  }
}

extension FeedItem {
  /// - Parameter row: has the time and the ids of author and post.
  init(_ row: Row) {
    self.init(publishedAt: row.timestamp(0), post: Post(author: row.user(1), id: PostID(unchecked: row.text(2))))
  }
}
