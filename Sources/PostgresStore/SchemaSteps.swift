/// The SQL that makes and changes the tables. Released steps never change; new ones are added.
enum SchemaSteps {
  static let all: [String] = [version1Tables + version1Views, version2]

  /// Keys are 16-byte digests (`StoreKey`) as `uuid`, times are microseconds since 1970. A string is stored once, in the row of
  /// the edge or post that it belongs to. Ids compare by their bytes (`COLLATE "C"`).
  private static let version1Tables = """
    CREATE TABLE setting(
      name text NOT NULL PRIMARY KEY,
      value bigint NOT NULL
    );

    -- The registers of SPEC 4. state: 0 present, 1 present and silent, 2 absent.
    CREATE TABLE edge(
      kind smallint NOT NULL,       -- 0 follow, 1 like, 2 favorite
      state smallint NOT NULL,
      time bigint NOT NULL,
      actor uuid NOT NULL,
      subject uuid NOT NULL,        -- the followed user, or the post
      recipient uuid NOT NULL,
      event text COLLATE "C" NOT NULL,
      actor_id text COLLATE "C" NOT NULL,
      recipient_id text COLLATE "C" NOT NULL,
      post_id text COLLATE "C",
      extra text COLLATE "C",
      PRIMARY KEY(kind, actor, subject)
    );
    -- The other direction of every relation, and what a post is fanned out along.
    CREATE INDEX edge_by_subject ON edge(kind, subject, actor, state);
    -- The feedback view: the entries of a recipient in the order in which they are read.
    CREATE INDEX edge_feedback ON edge(recipient, time) WHERE state = 0 AND actor <> recipient;
    -- Who has left an author: where a delivery that was overtaken by an unfollow may have left a row.
    CREATE INDEX edge_left ON edge(subject, actor) WHERE kind = 0 AND state = 2;

    -- former: the publishedAt that the post once had, under which feeds may still hold it. It is a part of the row so that
    -- the upsert which replaces a time also records it; between two statements another publication could slip in.
    CREATE TABLE post(
      at bigint,                    -- publishedAt; null: not published here
      time bigint,
      key uuid NOT NULL PRIMARY KEY,
      author uuid NOT NULL,
      deleted boolean NOT NULL,
      former bigint[] NOT NULL,
      event text COLLATE "C",
      author_id text COLLATE "C" NOT NULL,
      post_id text COLLATE "C" NOT NULL
    ) WITH (fillfactor = 90);
    CREATE INDEX post_live ON post(author, at, key) WHERE NOT deleted AND at IS NOT NULL;
    -- Where a back-fill that was overtaken by a deletion or a republication may have left rows.
    CREATE INDEX post_moved ON post(author) WHERE at IS NOT NULL AND (deleted OR former <> '{}');

    CREATE TABLE seen(
      owner uuid NOT NULL PRIMARY KEY,
      up_to bigint NOT NULL,
      owner_id text COLLATE "C" NOT NULL
    ) WITH (fillfactor = 80);

    -- One narrow row for each delivery. A row whose post is deleted or has another publishedAt is not shown.
    -- Rows go in about as many as come once feeds are full, so old ones are vacuumed early.
    CREATE TABLE feed(
      owner uuid NOT NULL,
      at bigint NOT NULL,
      post uuid NOT NULL,
      PRIMARY KEY(owner, at, post)
    ) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);

    -- The feeds that have been trimmed. All that belongs in the feed at or after the horizon is there; before it, gaps.
    -- spare: how many rows at or after the horizon may go before fewer than the feed limit might be left.
    -- There is no index on what changes, and room in the pages, so that an update writes no index.
    CREATE TABLE feed_trim(
      owner uuid NOT NULL PRIMARY KEY,
      horizon bigint NOT NULL,
      spare bigint NOT NULL
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
    """

  /// What other services may read. Each view leaves out what readers must not be shown (SPEC 5), and takes a condition on its
  /// leading key column to an index.
  private static let version1Views = """


    -- The key of a user, and of a post.
    CREATE FUNCTION fanout_key(user_id text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
      RETURN encode(substring(sha256(convert_to(user_id, 'UTF8')) FROM 1 FOR 16), 'hex')::uuid;
    CREATE FUNCTION fanout_key(author_id text, post_id text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
      RETURN encode(substring(sha256(convert_to(author_id || U&'\\001F' || post_id, 'UTF8')) FROM 1 FOR 16), 'hex')::uuid;

    -- A user's feedback: WHERE owner = fanout_key('alice') ORDER BY time DESC, kind DESC, actor DESC, subject DESC LIMIT 20.
    CREATE VIEW feedback AS
      SELECT e.recipient AS owner, e.recipient_id AS owner_id, e.time,
        e.kind, (ARRAY['follow', 'like', 'favorite'])[e.kind + 1] AS type, e.actor, e.actor_id, e.subject, e.post_id,
        e.event, e.extra, e.time <= coalesce((SELECT s.up_to FROM seen s WHERE s.owner = e.recipient), -1) AS seen
      FROM edge e
      WHERE e.state = 0 AND e.actor <> e.recipient
        AND NOT EXISTS (SELECT 1 FROM post p WHERE p.key = e.subject AND p.deleted);

    -- A user's feed: WHERE owner = fanout_key('alice') ORDER BY at DESC, author_id DESC, post_id DESC LIMIT 20.
    -- No more than the feed limit (in `setting`) of a user's rows are the newest of all that belong there.
    CREATE VIEW feed_items AS
      SELECT f.owner, f.at, p.author, p.author_id, f.post, p.post_id
      FROM feed f JOIN post p ON p.key = f.post AND p.at = f.at AND NOT p.deleted
      WHERE f.at >= coalesce((SELECT t.horizon FROM feed_trim t WHERE t.owner = f.owner), -1)
        AND (p.author = f.owner OR EXISTS (
          SELECT 1 FROM edge e WHERE e.kind = 0 AND e.actor = f.owner AND e.subject = p.author AND e.state < 2));

    -- Relations, both directions: WHERE actor = fanout_key('alice'), or WHERE subject = fanout_key('bob').
    CREATE VIEW follows AS
      SELECT e.actor, e.actor_id, e.subject, e.recipient_id AS subject_id, e.time FROM edge e
      WHERE e.kind = 0 AND e.state < 2;
    CREATE VIEW likes AS
      SELECT e.actor, e.actor_id, e.subject, e.recipient_id AS author_id, e.post_id, e.time FROM edge e
      WHERE e.kind = 1 AND e.state < 2 AND NOT EXISTS (SELECT 1 FROM post p WHERE p.key = e.subject AND p.deleted);
    CREATE VIEW favorites AS
      SELECT e.actor, e.actor_id, e.subject, e.recipient_id AS author_id, e.post_id, e.time FROM edge e
      WHERE e.kind = 2 AND e.state < 2 AND NOT EXISTS (SELECT 1 FROM post p WHERE p.key = e.subject AND p.deleted);
    """

  /// What readers see has the plain names; what only the program should touch has not.
  private static let version2 = """
    ALTER TABLE feed RENAME TO feed_row;
    ALTER INDEX feed_pkey RENAME TO feed_row_pkey;

    -- A user's feed: WHERE owner = fanout_key('alice') ORDER BY at DESC, author_id DESC, post_id DESC LIMIT 20.
    ALTER VIEW feed_items RENAME TO feed;
    """
}
