internal import FanoutStore
internal import SocialEvents

/// Writes facts: registers in which the greatest version wins (SPEC 4).
///
/// One statement for each kind of fact. The batch is sorted by key and statements lock rows in the order of their arrays: edges,
/// then posts, then seen, each by key. So two batches never wait for each other in a circle.
///
/// Conflicts are named by constraint, since distributed tables have one more column in theirs.
struct FactWriter {
  let database: Connection

  /// - Returns: how many registers changed.
  func write(_ batch: FactBatch) throws(StoreError) -> Int {
    let kinds = (batch.edges.isEmpty ? 0 : 1) + (batch.posts.isEmpty ? 0 : 1) + (batch.seen.isEmpty ? 0 : 1)
    // A single statement is a transaction already.
    if kinds < 2 { return try writeAll(batch) }
    return try database.transaction { () throws(StoreError) in try writeAll(batch) }
  }

  private func writeAll(_ batch: FactBatch) throws(StoreError) -> Int {
    var changed = 0
    if !batch.edges.isEmpty { changed += try write(batch.edges) }
    if !batch.posts.isEmpty { changed += try write(batch.posts) }
    if !batch.seen.isEmpty { changed += try write(batch.seen) }
    return changed
  }

  private func write(_ edges: [EdgeFact]) throws(StoreError) -> Int {
    try database.change(
      Self.upsertEdges,
      .smallIntegers(edges) { Int($0.edge.kind.rawValue) },
      .smallIntegers(edges) { $0.state },
      .integers(edges) { $0.version.time.microseconds },
      .keys(edges) { $0.actorKey },
      .keys(edges) { $0.subjectKey },
      .keys(edges) { $0.recipientKey },
      .texts(edges) { $0.version.event.string },
      .texts(edges) { $0.edge.actor.string },
      .texts(edges) { $0.edge.recipient.string },
      .texts(edges) { $0.edge.post?.string },
      .texts(edges) { $0.extra })
  }

  private func write(_ posts: [PostFact]) throws(StoreError) -> Int {
    try database.change(
      Self.upsertPosts,
      .keys(posts) { $0.key },
      .keys(posts) { $0.authorKey },
      .flags(posts) { $0.isDeleted },
      .integers(posts) { $0.publication?.publishedAt.microseconds },
      .integers(posts) { $0.publication?.version.time.microseconds },
      .texts(posts) { $0.publication?.version.event.string },
      .texts(posts) { $0.post.author.string },
      .texts(posts) { $0.post.id.string })
  }

  private func write(_ seen: [SeenFact]) throws(StoreError) -> Int {
    try database.change(
      Self.upsertSeen,
      .keys(seen) { $0.key },
      .integers(seen) { $0.upTo.microseconds },
      .texts(seen) { $0.user.string })
  }

  /// `EdgeFact.supersedes` in SQL.
  private static let upsertEdges = """
    INSERT INTO edge(kind, state, time, actor, subject, recipient, event, actor_id, recipient_id, post_id, extra)
    SELECT * FROM unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::uuid[], $5::uuid[], $6::uuid[], $7::text[],
      $8::text[], $9::text[], $10::text[], $11::text[])
    ON CONFLICT ON CONSTRAINT edge_pkey DO UPDATE
      SET time = excluded.time, event = excluded.event, state = excluded.state, extra = excluded.extra
      WHERE (excluded.time, excluded.event, excluded.state, coalesce(excluded.extra, ''))
        > (edge.time, edge.event, edge.state, coalesce(edge.extra, ''))
    """

  /// `PostFact.merge` in SQL. The row's own time is remembered in the same breath in which it is replaced.
  ///
  /// Only so many former times are: each publication looks for rows under all of them, so one that is forgotten has been looked
  /// for eight times. A writer that went by it would have to have been at work all that while, and then left a row that
  /// nobody is shown.
  private static let upsertPosts = """
    INSERT INTO post(key, author, deleted, at, time, event, author_id, post_id, former)
    SELECT *, '{}'::bigint[] FROM unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::bigint[], $5::bigint[], $6::text[],
      $7::text[], $8::text[])
    ON CONFLICT ON CONSTRAINT post_pkey DO UPDATE
      SET deleted = post.deleted OR excluded.deleted,
        at = CASE WHEN \(publicationWins) THEN excluded.at ELSE post.at END,
        time = CASE WHEN \(publicationWins) THEN excluded.time ELSE post.time END,
        event = CASE WHEN \(publicationWins) THEN excluded.event ELSE post.event END,
        former = CASE WHEN \(publicationWins) AND post.at <> excluded.at
          THEN (post.at || array_remove(post.former, post.at))[:8] ELSE post.former END
      WHERE excluded.deleted AND NOT post.deleted OR \(publicationWins)
    """

  /// `PostFact.Publication.supersedes` in SQL.
  private static let publicationWins = """
    (excluded.at IS NOT NULL AND (post.at IS NULL
      OR (excluded.time, excluded.event, excluded.at) > (post.time, post.event, post.at)))
    """

  private static let upsertSeen = """
    INSERT INTO seen(owner, up_to, owner_id) SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[])
    ON CONFLICT(owner) DO UPDATE SET up_to = excluded.up_to WHERE excluded.up_to > seen.up_to
    """
}
