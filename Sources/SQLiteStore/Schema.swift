internal import FanoutStore

/// The tables, by version. A database's version is its `user_version`.
enum Schema {
  /// Marks the file as Fanout's: "FnOt".
  static let applicationID: Int64 = 0x466E_4F74

  /// Each step takes a database from one version to the next. Released steps never change; new ones are added.
  static let steps: [String] = [version1]

  static var newest: Int64 { Int64(steps.count) }

  /// Keys are 16-byte digests (`StoreKey`), times are microseconds since 1970. A string is stored once, in the row of the
  /// edge or post that it belongs to.
  private static let version1 = """
    -- The registers of SPEC 4. state: 0 present, 1 present and silent, 2 absent.
    -- Rows are appended, and only the narrow indexes are written in the order of their keys: a batch of new edges then touches
    -- far fewer pages than if the rows themselves lay in that order.
    CREATE TABLE edge(
      id INTEGER PRIMARY KEY,
      kind INTEGER NOT NULL,        -- 0 follow, 1 like, 2 favorite
      actor BLOB NOT NULL,
      subject BLOB NOT NULL,        -- the followed user, or the post
      recipient BLOB NOT NULL,
      time INTEGER NOT NULL,
      event TEXT NOT NULL,
      state INTEGER NOT NULL,
      actor_id TEXT NOT NULL,
      recipient_id TEXT NOT NULL,
      post_id TEXT,
      extra TEXT
    );
    CREATE UNIQUE INDEX edge_identity ON edge(kind, actor, subject);
    -- The other direction of every relation, and what a post is fanned out along.
    CREATE INDEX edge_by_subject ON edge(kind, subject, actor, state);
    -- The feedback view: the entries of a recipient in the order in which they are read.
    CREATE INDEX edge_feedback ON edge(recipient, time) WHERE state = 0 AND actor <> recipient;

    CREATE TABLE post(
      key BLOB NOT NULL PRIMARY KEY,
      author BLOB NOT NULL,
      at INTEGER,                   -- publishedAt; null: not published here
      time INTEGER,
      event TEXT,
      deleted INTEGER NOT NULL,
      author_id TEXT NOT NULL,
      post_id TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX post_live ON post(author, at, key) WHERE deleted = 0 AND at IS NOT NULL;

    -- The publishedAt that a post once had, under which feeds may still hold it.
    CREATE TABLE post_former(
      post BLOB NOT NULL,
      at INTEGER NOT NULL,
      PRIMARY KEY(post, at)
    ) WITHOUT ROWID;

    CREATE TABLE seen(
      user BLOB NOT NULL PRIMARY KEY,
      up_to INTEGER NOT NULL,
      user_id TEXT NOT NULL
    ) WITHOUT ROWID;

    -- One narrow row for each delivery. A row whose post is deleted or has another publishedAt is not shown.
    CREATE TABLE feed(
      owner BLOB NOT NULL,
      at INTEGER NOT NULL,
      post BLOB NOT NULL,
      PRIMARY KEY(owner, at, post)
    ) WITHOUT ROWID;

    -- The feeds that have been trimmed. All that belongs in the feed at or after the horizon is there; before it, gaps.
    -- spare: how many rows at or after the horizon may go before fewer than the feed limit might be left.
    CREATE TABLE feed_trim(
      owner BLOB NOT NULL PRIMARY KEY,
      horizon INTEGER NOT NULL,
      spare INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX feed_trim_horizon ON feed_trim(horizon);

    CREATE TABLE setting(
      name TEXT NOT NULL PRIMARY KEY,
      value INTEGER NOT NULL
    ) WITHOUT ROWID;
    """

  /// Brings the database to the newest version. Repeating it does nothing.
  /// - Returns: the versions before and after.
  static func migrate(_ database: Connection, settings: StoreSettings) throws(StoreError) -> (from: Int64, to: Int64) {
    let from = try version(of: database)
    var reached = from
    while reached < newest {
      let step = Int(reached)
      // A step is one transaction, and checks again inside: two processes may both have begun to migrate.
      try database.write { () throws(StoreError) in
        guard try version(of: database) == step else { return }
        try database.execute(steps[step])
        if step == 0 {
          try database.execute(
            """
            PRAGMA application_id = \(applicationID);
            INSERT INTO setting(name, value) VALUES('feed_limit', \(settings.feedLimit));
            INSERT INTO setting(name, value) VALUES('own_posts', \(settings.includesOwnPosts ? 1 : 0));
            """)
        }
        try database.execute("PRAGMA user_version = \(step + 1)")
      }
      reached = try version(of: database)
    }
    return (from, reached)
  }

  /// The version of the database, 0 for an empty one.
  /// - Throws: `.schema` for another program's database, or one of a newer version than this program knows.
  static func version(of database: Connection) throws(StoreError) -> Int64 {
    // Tables first: another process may be making the store, and whoever sees its tables sees its mark afterwards.
    let tables = try database.statement("SELECT count(*) FROM sqlite_schema")
    let isEmpty = try tables.first { tables.integer(0) } == 0
    let application = try pragma("application_id", of: database)
    let version = try pragma("user_version", of: database)
    if !isEmpty && application != applicationID {
      throw StoreError(
        .schema, "the file is a SQLite database of another program. Name another with --store sqlite:PATH.")
    }
    if version > newest {
      throw StoreError(
        .schema,
        "the store has schema version \(version), this program knows \(newest). Use a newer version of the program.")
    }
    return version
  }

  static func settings(of database: Connection) throws(StoreError) -> StoreSettings {
    var settings = StoreSettings.standard
    let statement = try database.statement("SELECT name, value FROM setting")
    for (name, value) in try statement.rows({ (statement.text(0), statement.integer(1)) }) {
      switch name {
      case "feed_limit": settings.feedLimit = Int(value)
      case "own_posts": settings.includesOwnPosts = value != 0
      default: break
      }
    }
    return settings
  }

  private static func pragma(_ name: String, of database: Connection) throws(StoreError) -> Int64 {
    // Not kept as a prepared statement: a pragma's value may be computed when it is prepared.
    let statement = try database.statement("SELECT \(name) FROM pragma_\(name)")
    return try statement.first { statement.integer(0) } ?? 0
  }
}
