internal import FanoutStore
internal import SocialEvents

/// Writes facts: registers in which the greatest version wins (SPEC 4). Runs inside a write transaction.
struct FactWriter {
  let database: Connection

  /// - Returns: how many registers changed.
  func write(_ batch: FactBatch) throws(StoreError) -> Int {
    var changed = 0
    if !batch.edges.isEmpty {
      let upsert = try database.statement(Self.upsertEdge)
      // Looked at in place: taking each fact out of the array would count references of all its strings.
      let edges = batch.edges.span
      for index in edges.indices {
        upsert.bind(1, Int(edges[index].edge.kind.rawValue))
        upsert.bind(2, edges[index].actorKey)
        upsert.bind(3, edges[index].subjectKey)
        upsert.bind(4, edges[index].recipientKey)
        upsert.bind(5, edges[index].version.time.microseconds)
        upsert.bind(6, edges[index].version.event.string)
        upsert.bind(7, edges[index].state)
        upsert.bind(8, edges[index].edge.actor.string)
        upsert.bind(9, edges[index].edge.recipient.string)
        upsert.bind(10, edges[index].edge.post?.string)
        upsert.bind(11, edges[index].extra)
        try upsert.run()
        changed += database.changes
      }
    }
    for fact in batch.posts { changed += try write(fact) ? 1 : 0 }
    if !batch.seen.isEmpty {
      let upsert = try database.statement(Self.upsertSeen)
      for fact in batch.seen {
        upsert.bind(1, fact.key)
        upsert.bind(2, fact.upTo.microseconds)
        upsert.bind(3, fact.user.string)
        try upsert.run()
        changed += database.changes
      }
    }
    return changed
  }

  private func write(_ fact: PostFact) throws(StoreError) -> Bool {
    var changed = false
    if let publication = fact.publication {
      let former = try database.statement(Self.rememberFormer)
      former.bind(1, fact.key)
      former.bind(2, publication.publishedAt.microseconds)
      former.bind(3, publication.version.time.microseconds)
      former.bind(4, publication.version.event.string)
      try former.run()
      let publish = try database.statement(Self.publish)
      publish.bind(1, fact.key)
      publish.bind(2, publication.publishedAt.microseconds)
      publish.bind(3, publication.version.time.microseconds)
      publish.bind(4, publication.version.event.string)
      publish.bind(5, fact.authorKey)
      publish.bind(6, fact.post.author.string)
      publish.bind(7, fact.post.id.string)
      try publish.run()
      changed = database.changes > 0
    }
    if fact.isDeleted {
      let delete = try database.statement(Self.delete)
      delete.bind(1, fact.key)
      delete.bind(2, fact.authorKey)
      delete.bind(3, fact.post.author.string)
      delete.bind(4, fact.post.id.string)
      try delete.run()
      changed = changed || database.changes > 0
    }
    return changed
  }

  /// `EdgeFact.supersedes` in SQL.
  private static let upsertEdge = """
    INSERT INTO edge(kind, actor, subject, recipient, time, event, state, actor_id, recipient_id, post_id, extra)
    VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    ON CONFLICT(kind, actor, subject) DO UPDATE
      SET time = excluded.time, event = excluded.event, state = excluded.state, extra = excluded.extra
      WHERE (excluded.time, excluded.event, excluded.state, coalesce(excluded.extra, ''))
        > (edge.time, edge.event, edge.state, coalesce(edge.extra, ''))
    """

  /// Feeds may hold the post under the time that is about to be replaced.
  private static let rememberFormer = """
    INSERT OR IGNORE INTO post_former(post, at)
    SELECT key, at FROM post WHERE key = ?1 AND at <> ?2 AND (?3, ?4, ?2) > (time, event, at)
    """

  /// `PostFact.Publication.supersedes` in SQL.
  private static let publish = """
    INSERT INTO post(key, at, time, event, deleted, author, author_id, post_id) VALUES(?1, ?2, ?3, ?4, 0, ?5, ?6, ?7)
    ON CONFLICT(key) DO UPDATE SET at = excluded.at, time = excluded.time, event = excluded.event
      WHERE post.at IS NULL OR (excluded.time, excluded.event, excluded.at) > (post.time, post.event, post.at)
    """

  private static let delete = """
    INSERT INTO post(key, deleted, author, author_id, post_id) VALUES(?1, 1, ?2, ?3, ?4)
    ON CONFLICT(key) DO UPDATE SET deleted = 1 WHERE post.deleted = 0
    """

  private static let upsertSeen = """
    INSERT INTO seen(user, up_to, user_id) VALUES(?1, ?2, ?3)
    ON CONFLICT(user) DO UPDATE SET up_to = excluded.up_to WHERE excluded.up_to > seen.up_to
    """
}
