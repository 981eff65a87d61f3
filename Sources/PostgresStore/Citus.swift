internal import FanoutStore
internal import SocialEvents

/// All that is different once `migrate --distribute` has distributed the tables over the nodes of a Citus cluster.
///
/// A row lies with the user who reads it: edges with their recipient, posts with their author, the rest with its owner, all in
/// one co-location group. So whatever recipients, authors and owners ask is answered by one shard. A fan-out reads the edges of
/// authors and writes rows of owners: Citus repartitions an INSERT … SELECT; for a DELETE or UPDATE, which it can't, and for every
/// other join that is not on the distribution columns, one side is a MATERIALIZED query, whose result Citus takes to all nodes.
///
/// What the statements here avoid, as Citus refuses it or makes something else of it:
/// * FOR UPDATE in statements about more than one shard;
/// * limits, offsets and look-ups for each element of an array: arrays come as MATERIALIZED queries, too, where `unnest` also
///   keeps the types of its columns;
/// * generic plans: without the values Citus plans neither INSERT … SELECT nor which shards are meant (`session`).
///
/// A MATERIALIZED part is read before the rest, and shards are read one by one, so a statement goes by facts that may be older
/// than its write, as two statements do. SPEC 6 allows for that: a writer reads only after its own facts are visible on all
/// nodes, which they are when their commit returns (`Warnings`), and looks again after its write has been committed. Readers
/// read rows first and then the facts that must bear them out.
///
/// Locks: Citus lets one statement at a time write to several shards of a table (`citus.enable_deadlock_prevention`), and
/// such a statement writes one table; a transaction about one owner locks `feed_trim` before `feed_row`. Whatever circle is left
/// Citus detects and ends with SQLSTATE 40P01, upon which the statement is begun again, like any other.
enum Citus {
  /// Settings that steer plans stay as they are: shards are planned for on their nodes, where these don't reach.
  static let session = """
    SET statement_timeout = '60s'; SET lock_timeout = '15s'; SET idle_in_transaction_session_timeout = '60s';
    SET default_transaction_isolation = 'read committed';
    SET jit = off; SET plan_cache_mode = force_custom_plan;
    """

  // MARK: Distribution

  /// Keys must hold the distribution column. It follows from the other columns, so they are as unique as before.
  static let distribution = """
    -- Definitions and copies over one connection to each node, as one transaction needs it.
    SET LOCAL citus.multi_shard_modify_mode = 'sequential';
    ALTER TABLE edge DROP CONSTRAINT edge_pkey,
      ADD CONSTRAINT edge_pkey PRIMARY KEY(kind, actor, subject, recipient);
    ALTER TABLE post DROP CONSTRAINT post_pkey, ADD CONSTRAINT post_pkey PRIMARY KEY(key, author);

    -- What other services may read. Posts are looked up where the edge lies.
    CREATE OR REPLACE VIEW feedback AS
      SELECT e.recipient AS owner, e.recipient_id AS owner_id, e.time,
        e.kind, (ARRAY['follow', 'like', 'favorite'])[e.kind + 1] AS type, e.actor, e.actor_id, e.subject, e.post_id,
        e.event, e.extra, e.time <= coalesce(s.up_to, -1) AS seen
      FROM edge e LEFT JOIN seen s ON s.owner = e.recipient
      WHERE e.state = 0 AND e.actor <> e.recipient AND \(notDeleted());
    CREATE OR REPLACE VIEW likes AS
      SELECT e.actor, e.actor_id, e.subject, e.recipient_id AS author_id, e.post_id, e.time FROM edge e
      WHERE e.kind = 1 AND e.state < 2 AND \(notDeleted());
    CREATE OR REPLACE VIEW favorites AS
      SELECT e.actor, e.actor_id, e.subject, e.recipient_id AS author_id, e.post_id, e.time FROM edge e
      WHERE e.kind = 2 AND e.state < 2 AND \(notDeleted());
    -- A view would read everybody's rows before it looks at a condition on the owner.
    DROP VIEW feed;
    CREATE FUNCTION feed_of(reader uuid)
      RETURNS TABLE(owner uuid, at bigint, author uuid, author_id text, post uuid, post_id text)
      LANGUAGE plpgsql STABLE AS $feed$
      #variable_conflict use_column
      BEGIN
        RETURN QUERY
          WITH \(heldRows(of: "reader"))
          SELECT reader, p.at, p.author, p.author_id, p.key, p.post_id FROM held h JOIN \(heldPosts(of: "reader"))
          WHERE \(belongs("reader", ownPosts: "true"));
      END $feed$;

    INSERT INTO setting(name, value) VALUES('distributed', 1);
    SELECT create_distributed_table('edge', 'recipient', colocate_with => 'none');
    SELECT create_distributed_table('post', 'author', colocate_with => 'edge');
    SELECT create_distributed_table('seen', 'owner', colocate_with => 'edge');
    SELECT create_distributed_table('feed_row', 'owner', colocate_with => 'edge');
    SELECT create_distributed_table('feed_trim', 'owner', colocate_with => 'edge');
    SELECT create_reference_table('setting');
    """

  // MARK: Parts

  /// Arrays as a table `w`.
  private static func with(_ columns: String, _ arrays: String) -> String {
    "WITH w AS MATERIALIZED (SELECT * FROM unnest(\(arrays)) w(\(columns)))"
  }

  /// The follow edges to `w.author`, where the author's rows lie.
  private static let followers = "edge e ON e.kind = 0 AND e.recipient = w.author AND e.subject = w.author"

  /// `ViewReader.notDeleted`, with the author's key, which says where the post lies.
  static func notDeleted(author: String = "e.recipient") -> String {
    "NOT EXISTS (SELECT 1 FROM post p WHERE p.author = \(author) AND p.key = e.subject AND p.deleted)"
  }

  /// A feed's rows that readers may be shown.
  private static func heldRows(of owner: String) -> String {
    """
    held AS MATERIALIZED (
      SELECT f.at, f.post FROM feed_row f WHERE f.owner = \(owner)
        AND f.at >= coalesce((SELECT t.horizon FROM feed_trim t WHERE t.owner = \(owner)), \(FeedTrimmer.beginning)))
    """
  }

  /// The posts that the rows `h` are about, each with the owner's follow edge to its author, if there is one.
  private static func heldPosts(of owner: String) -> String {
    "post p ON p.key = h.post AND p.at = h.at AND NOT p.deleted \(followed(by: owner))"
  }

  private static func followed(by owner: String) -> String {
    """
    LEFT JOIN edge e ON e.kind = 0 AND e.actor = \(owner) AND e.subject = p.author AND e.recipient = p.author AND e.state < 2
    """
  }

  /// `ViewReader.belongs`, with that edge.
  private static func belongs(_ owner: String, ownPosts: String) -> String {
    "CASE WHEN p.author = \(owner) THEN \(ownPosts) ELSE e.actor IS NOT NULL END"
  }

  // MARK: Edges (`EdgeSync`)

  static let readEdges = """
    \(with("actor, subject", "$1::uuid[], $2::uuid[]"))
    SELECT e.actor, e.subject, e.state < 2 FROM w
      JOIN edge e ON e.kind = 0 AND e.actor = w.actor AND e.subject = w.subject AND e.recipient = w.subject
      WHERE e.recipient = ANY($2::uuid[])
    """

  static let newestPosts = """
    SELECT author, count(*), min(at) FROM (
      SELECT author, at, row_number() OVER (PARTITION BY author ORDER BY at DESC) AS rank FROM post
        WHERE author = ANY($1::uuid[]) AND NOT deleted AND at IS NOT NULL) newest
      WHERE rank <= $2::bigint GROUP BY author
    """

  static let backfill = """
    \(with("owner, author, cutoff", "$1::uuid[], $2::uuid[], $3::bigint[]"))
    INSERT INTO feed_row(owner, at, post)
    SELECT w.owner, p.at, p.key FROM w
      JOIN post p ON p.author = w.author AND p.at >= w.cutoff AND NOT p.deleted AND p.at IS NOT NULL
      WHERE p.author = ANY($2::uuid[])
    ON CONFLICT DO NOTHING
    """

  static let purge = """
    \(with("owner, author", "$1::uuid[], $2::uuid[]")),
    oldest AS MATERIALIZED (SELECT owner, min(at) AS at FROM feed_row WHERE owner = ANY($1::uuid[]) GROUP BY owner),
    gone AS MATERIALIZED (
      SELECT w.owner, p.at, p.key AS post FROM w JOIN oldest o ON o.owner = w.owner
        JOIN post p ON p.author = w.author AND p.at >= o.at AND NOT p.deleted AND p.at IS NOT NULL
        WHERE p.author = ANY($2::uuid[]))
    DELETE FROM feed_row f USING gone g
    WHERE f.owner = g.owner AND f.at = g.at AND f.post = g.post AND f.owner = ANY($1::uuid[])
    """

  static let recount = "UPDATE feed_trim SET spare = -1 WHERE owner = ANY($1::uuid[])"

  static let moved = """
    \(with("owner, author, cutoff", "$1::uuid[], $2::uuid[], $3::bigint[]")),
    gone AS MATERIALIZED (
      SELECT w.owner, m.held AS at, m.key AS post FROM w JOIN (
        SELECT author, key, at, deleted, unnest(former || at) AS held FROM post
          WHERE author = ANY($2::uuid[]) AND at IS NOT NULL AND (deleted OR former <> '{}')) m ON m.author = w.author
        WHERE m.held >= w.cutoff AND (m.deleted OR m.held <> m.at))
    SELECT f.owner, f.post FROM feed_row f JOIN gone g ON f.owner = g.owner AND f.at = g.at AND f.post = g.post
      WHERE f.owner = ANY($1::uuid[])
    """

  // MARK: Posts (`PostSync`)

  static let readPosts = """
    \(with("key, shared", "$1::uuid[], $2::boolean[]"))
    SELECT p.key, p.author, p.at, p.deleted, p.former, w.shared FROM w JOIN post p ON p.key = w.key
    """

  /// To all followers. $1 to $3: posts, their times and authors. $4 and $5: the range of followers.
  fileprivate static let deliver = """
    \(with("post, at, author", "$1::uuid[], $2::bigint[], $3::uuid[]"))
    INSERT INTO feed_row(owner, at, post)
    SELECT e.actor, w.at, w.post FROM w JOIN \(followers) AND e.actor BETWEEN $4::uuid AND $5::uuid AND e.state < 2
      WHERE e.recipient = ANY($3::uuid[])
    ON CONFLICT DO NOTHING
    """

  /// To the first $6 followers of a range: one shard's, and so few that the coordinator may carry them.
  fileprivate static let deliverFirst = """
    INSERT INTO feed_row(owner, at, post)
    SELECT e.actor, $2::bigint, $1::uuid FROM (
      SELECT actor FROM edge WHERE kind = 0 AND recipient = $3::uuid AND subject = $3::uuid
        AND actor BETWEEN $4::uuid AND $5::uuid AND state < 2 ORDER BY actor LIMIT $6::bigint) e
    ON CONFLICT DO NOTHING
    """

  fileprivate static let deliverOwn = """
    INSERT INTO feed_row(owner, at, post)
    SELECT author, at, post FROM unnest($1::uuid[], $2::bigint[], $3::uuid[]) w(post, at, author)
    ON CONFLICT DO NOTHING
    """

  /// Who has or had an edge to the authors, and the authors. $1 to $4: posts, their times, authors, and whether along edges.
  /// $5 and $6: the range of followers. $7: own feeds too.
  private static let holders = """
    \(with("post, at, author, shared", "$1::uuid[], $2::bigint[], $3::uuid[], $4::boolean[]")),
    holders AS MATERIALIZED (
      SELECT e.actor AS owner, w.at, w.post FROM w JOIN \(followers) AND e.actor BETWEEN $5::uuid AND $6::uuid
        WHERE w.shared AND e.recipient = ANY($3::uuid[])
      UNION ALL
      SELECT w.author, w.at, w.post FROM w WHERE $7::boolean)
    """

  /// The first $6 of a range who have or had an edge to the author of one post.
  private static let firstHolders = """
    WITH holders AS MATERIALIZED (
      SELECT actor AS owner, $2::bigint AS at, $1::uuid AS post FROM edge
        WHERE kind = 0 AND recipient = $3::uuid AND subject = $3::uuid AND actor BETWEEN $4::uuid AND $5::uuid
        ORDER BY actor LIMIT $6::bigint)
    """

  private static let remove = """
    DELETE FROM feed_row f USING holders h WHERE f.owner = h.owner AND f.at = h.at AND f.post = h.post
    """
  private static let countOff = """
    , lost AS MATERIALIZED (SELECT owner, count(*) AS rows FROM holders GROUP BY owner)
    UPDATE feed_trim t SET spare = t.spare - l.rows FROM lost l WHERE t.owner = l.owner RETURNING t.owner, t.spare
    """

  fileprivate static let retract = holders + remove
  fileprivate static let retractFirst = firstHolders + remove
  fileprivate static let retractSpare = holders + countOff
  fileprivate static let retractSpareFirst = firstHolders + countOff

  static let left = """
    \(with("post, at, author", "$1::uuid[], $2::bigint[], $3::uuid[]")),
    leavers AS MATERIALIZED (
      SELECT e.actor, w.author, w.at, w.post FROM w
        JOIN \(followers) AND e.actor BETWEEN $4::uuid AND $5::uuid AND e.state = 2
        WHERE e.recipient = ANY($3::uuid[]))
    SELECT DISTINCT l.actor, l.author FROM leavers l
      JOIN feed_row f ON f.owner = l.actor AND f.at = l.at AND f.post = l.post
    """

  static let sampledOwners = """
    \(with("author, low, high", "$1::uuid[], $2::uuid[], $3::uuid[]"))
    SELECT DISTINCT e.actor FROM w JOIN \(followers) AND e.actor BETWEEN w.low AND w.high AND e.state < 2
      WHERE e.recipient = ANY($1::uuid[])
    """

  // MARK: Audiences (`FeedWriter`)

  /// All are counted, as a limit for each author would need a look-up for each.
  static let countEdges = """
    SELECT recipient, least(count(*), $2::bigint) FROM edge
    WHERE kind = 0 AND recipient = ANY($1::uuid[]) AND subject = recipient GROUP BY recipient
    """

  static let lastOfChunk = """
    SELECT actor FROM edge WHERE kind = 0 AND recipient = $1::uuid AND subject = $1::uuid
      AND actor BETWEEN $2::uuid AND $3::uuid
    ORDER BY actor LIMIT 1 OFFSET $4::bigint
    """

  // MARK: Trimming (`FeedTrimmer`)

  fileprivate static let missing = """
    SELECT owner FROM feed_trim WHERE owner = ANY($1::uuid[]) AND spare < 0 AND horizon > \(FeedTrimmer.beginning)
    """
  fileprivate static let overfull = """
    SELECT owner FROM feed_row WHERE owner = ANY($1::uuid[]) GROUP BY owner HAVING count(*) > $2::bigint
    """

  static let countShown = """
    WITH held AS MATERIALIZED (SELECT f.at, f.post FROM feed_row f WHERE f.owner = $1::uuid AND f.at >= $2::bigint)
    SELECT count(*) FROM held h JOIN \(heldPosts(of: "$1::uuid"))
    WHERE \(belongs("$1::uuid", ownPosts: "$3::boolean"))
    """

  static let cut = "DELETE FROM feed_row WHERE owner = $1::uuid AND at < $2::bigint"

  static let removeFromFeed = """
    \(with("at, post", "$2::bigint[], $3::uuid[]"))
    DELETE FROM feed_row f USING w WHERE f.owner = $1::uuid AND f.at = w.at AND f.post = w.post
    """

  /// What others published and belongs in the feed of $1 at or after $2 and before $3.
  private static let others = """
    FROM edge e JOIN post p ON p.author = e.recipient AND p.at >= $2::bigint AND p.at < $3::bigint AND NOT p.deleted
      AND p.at IS NOT NULL
    WHERE e.kind = 0 AND e.actor = $1::uuid AND e.subject = e.recipient AND e.state < 2
    """
  private static let own = """
    FROM post p WHERE p.author = $1::uuid AND p.at >= $2::bigint AND p.at < $3::bigint AND NOT p.deleted
      AND p.at IS NOT NULL
    """

  fileprivate static let newestOfOthers = "SELECT p.at \(others) ORDER BY p.at DESC LIMIT $4::bigint"
  fileprivate static let newestOwn = "SELECT p.at \(own) ORDER BY p.at DESC LIMIT $4::bigint"

  private static func insert(_ owner: String, _ posts: String) -> String {
    """
    INSERT INTO feed_row(owner, at, post) SELECT \(owner), p.at, p.key \(posts) ON CONFLICT DO NOTHING RETURNING at, post
    """
  }
  fileprivate static let refillFromOthers = insert("e.actor", others)
  fileprivate static let refillOwn = insert("p.author", own)

  /// Where posts belong in the feed of $1. $2: the posts. $3: own posts too.
  fileprivate static let belonging = """
    SELECT p.at, p.key FROM post p \(followed(by: "$1::uuid"))
    WHERE p.key = ANY($2::uuid[]) AND NOT p.deleted AND p.at IS NOT NULL
      AND \(belongs("$1::uuid", ownPosts: "$3::boolean"))
    """

  // MARK: Reading (`ViewReader`, `ViewExport`)

  private static let newest = """
    WITH \(heldRows(of: "$1::uuid")), newest AS MATERIALIZED (
      SELECT p.at, p.author_id, p.post_id FROM held h JOIN \(heldPosts(of: "$1::uuid"))
      WHERE \(belongs("$1::uuid", ownPosts: "$2::boolean"))
      ORDER BY p.at DESC, p.author_id DESC, p.post_id DESC LIMIT $3::bigint)
    SELECT at, author_id, post_id FROM newest
    """

  /// What has been materialized has no collation of its own.
  static let page = """
    \(newest)
    WHERE (at, author_id COLLATE "C", post_id COLLATE "C") < ($5::bigint, $6::text, $7::text)
    ORDER BY at DESC, author_id COLLATE "C" DESC, post_id COLLATE "C" DESC LIMIT $4::bigint
    """
  fileprivate static let feed = newest

  static let exportedEdges = """
    SELECT e.kind, e.actor, e.subject, e.actor_id, e.recipient_id, e.post_id, e.state, e.time, e.event, e.extra,
      e.time <= coalesce(s.up_to, \(FeedTrimmer.beginning)), e.state < 2 AND p.key IS NULL, e.actor <> e.recipient
    FROM edge e LEFT JOIN seen s ON s.owner = e.recipient
      LEFT JOIN post p ON p.author = e.recipient AND p.key = e.subject AND p.deleted
    WHERE (e.kind, e.actor, e.subject) > ($1::bigint::int, $2::uuid, $3::uuid)
    ORDER BY e.kind, e.actor, e.subject LIMIT $4::bigint
    """

  static let owners = "SELECT DISTINCT owner FROM feed_row WHERE owner > $1::uuid ORDER BY owner LIMIT $2::bigint"

  fileprivate static let namesOfFollowers = """
    SELECT DISTINCT actor, actor_id FROM edge WHERE kind = 0 AND actor = ANY($1::uuid[])
    """
  fileprivate static let namesOfAuthors = """
    SELECT DISTINCT author, author_id FROM post WHERE author = ANY($1::uuid[]) AND NOT deleted AND at IS NOT NULL
    """
}

// MARK: -

extension PostSync {
  func deliverOnCitus(
    _ posts: [Placed], keys: ClosedRange<StoreKey>, limit: Int?, ownFeeds: Bool
  ) throws(StoreError) -> Int {
    var new = 0
    let shared = posts.filter(\.work.alongEdges)
    if let limit {
      for post in shared {
        new += try database.alone(hooks) { () throws(StoreError) in
          try database.change(
            Citus.deliverFirst, .key(post.work.key), .integer(post.at), .key(post.author), .key(keys.lowerBound),
            .key(keys.upperBound), .integer(limit))
        }
      }
    } else if !shared.isEmpty {
      new += try database.alone(hooks) { () throws(StoreError) in
        try database.change(
          Citus.deliver, .keys(shared) { $0.work.key }, .integers(shared) { $0.at }, .keys(shared) { $0.author },
          .key(keys.lowerBound), .key(keys.upperBound))
      }
    }
    if ownFeeds && settings.includesOwnPosts {
      new += try database.alone(hooks) { () throws(StoreError) in
        try database.change(
          Citus.deliverOwn, .keys(posts) { $0.work.key }, .integers(posts) { $0.at }, .keys(posts) { $0.author })
      }
    }
    return new
  }

  /// Takes posts from the feeds, each under one time.
  func removeOnCitus(
    _ gone: [Placed], keys: ClosedRange<StoreKey>, limit: Int?, ownFeeds: Bool
  ) throws(StoreError) {
    _ = try database.alone(hooks) { () throws(StoreError) in
      try holders(of: gone, keys, limit, ownFeeds, all: Citus.retract, first: Citus.retractFirst)
    }
  }

  /// - Returns: the owners of trimmed feeds that may have lost rows, and how many rows may still go.
  func countOffOnCitus(
    _ gone: [Placed], keys: ClosedRange<StoreKey>, limit: Int?, ownFeeds: Bool
  ) throws(StoreError) -> [(owner: StoreKey, spare: Int64)] {
    try holders(of: gone, keys, limit, ownFeeds, all: Citus.retractSpare, first: Citus.retractSpareFirst)
  }

  /// Runs one of two statements: only a slice has a limit, and it is about one post and never about own feeds.
  private func holders(
    of gone: [Placed], _ keys: ClosedRange<StoreKey>, _ limit: Int?, _ ownFeeds: Bool, all: String, first: String
  ) throws(StoreError) -> [(owner: StoreKey, spare: Int64)] {
    guard let limit else {
      return try database.query(
        all, .keys(gone) { $0.work.key }, .integers(gone) { $0.at }, .keys(gone) { $0.author },
        .flags(gone) { $0.work.alongEdges }, .key(keys.lowerBound), .key(keys.upperBound), .flag(ownFeeds)
      ).map { ($0.key(0), $0.integer(1)) }
    }
    var found: [(owner: StoreKey, spare: Int64)] = []
    for post in gone {
      found += try database.query(
        first, .key(post.work.key), .integer(post.at), .key(post.author), .key(keys.lowerBound), .key(keys.upperBound),
        .integer(limit)
      ).map { ($0.key(0), $0.integer(1)) }
    }
    return found
  }
}

extension FeedTrimmer {
  func wantingOnCitus(_ owners: [StoreKey], most: Int) throws(StoreError) -> [StoreKey] {
    let missing = try database.query(Citus.missing, .keys(owners)).map { $0.key(0) }
    let overfull = try database.query(Citus.overfull, .keys(owners), .integer(most)).map { $0.key(0) }
    return Set(missing + overfull).sorted()
  }

  func candidateOnCitus(
    _ owner: StoreKey, from low: Int64, before high: Int64, rank: Int
  ) throws(StoreError) -> Int64? {
    var times: [Int64] = []
    for sql in settings.includesOwnPosts ? [Citus.newestOfOthers, Citus.newestOwn] : [Citus.newestOfOthers] {
      times += try database.query(sql, .key(owner), .integer(low), .integer(high), .integer(rank + 1)).map {
        $0.integer(0)
      }
    }
    times.sort(by: >)
    return times.indices.contains(rank) ? times[rank] : nil
  }

  func refillOnCitus(_ owner: StoreKey, from low: Int64, before high: Int64) throws(StoreError) -> [Item] {
    var new: [Item] = []
    for sql in settings.includesOwnPosts ? [Citus.refillFromOthers, Citus.refillOwn] : [Citus.refillFromOthers] {
      new += try database.query(sql, .key(owner), .integer(low), .integer(high)).map {
        Item(at: $0.integer(0), post: $0.key(1))
      }
    }
    return new
  }

  func notShownOnCitus(_ items: [Item], in owner: StoreKey) throws(StoreError) -> [Item] {
    let shown = try database.query(
      Citus.belonging, .key(owner), .keys(items) { $0.post }, .flag(settings.includesOwnPosts)
    ).map { Item(at: $0.integer(0), post: $0.key(1)) }
    let set = Set(shown)
    return items.filter { !set.contains($0) }
  }
}

extension ViewExport {
  /// Calls `body` for each of a feed's rows.
  func feedsOnCitus(of owners: [StoreKey], _ body: (ViewRow) throws -> Void) throws {
    var names: [StoreKey: String] = [:]
    for sql in [Citus.namesOfFollowers, Citus.namesOfAuthors] {
      for (owner, name) in try database.query(sql, .keys(owners)).map({ ($0.key(0), $0.text(1)) }) {
        names[owner] = name
      }
    }
    for owner in owners {
      let items = try database.query(
        Citus.feed, .key(owner), .flag(settings.includesOwnPosts), .integer(settings.feedLimit))
      for row in items.map({ $0 }) {
        try body(.feed(of: UserID(unchecked: names[owner] ?? ""), FeedItem(row)))
      }
    }
  }
}
