internal import FanoutStore

/// The tables, by version. They lie in the first schema of the connection's `search_path`.
enum Schema {
  static var newest: Int { SchemaSteps.all.count }

  /// Brings the tables to the newest version. Repeating it does nothing.
  /// - Returns: the versions before (0: there was none) and after.
  static func migrate(
    _ database: Connection, settings: StoreSettings, to target: Int = newest
  ) throws(StoreError) -> (from: Int, to: Int) {
    // Making an index may take as long as it takes.
    try database.execute("SET lock_timeout = '15s'; SET statement_timeout = 0; SET standard_conforming_strings = on")
    try checkPlace(database)
    let from = try version(of: database)
    if from >= target { return (from, from) }
    // Until the last step is done, so that nobody who waits sees the tables in between.
    try database.query("SELECT pg_advisory_lock(\(Self.key))")
    defer { _ = try? database.query("SELECT pg_advisory_unlock(\(Self.key))") }
    // One transaction a step. New tables are made in one: a worker that is killed while it makes them leaves none, and not some
    // that only `migrate` would finish.
    let shares = from == 0 ? [0..<target] : (from..<target).map { $0..<$0 + 1 }
    for steps in shares {
      // One process at a time: whoever waited finds the steps done.
      try database.transaction { () throws(StoreError) in
        try database.query(Self.lock)
        guard try version(of: database) == steps.lowerBound else { return }
        for step in steps { try database.execute(sql(ofStep: step, settings: settings)) }
      }
    }
    return (from, try version(of: database))
  }

  /// Whoever migrates is the only one to.
  private static let lock = "SELECT pg_advisory_xact_lock(\(key))"
  private static let key = "hashtextextended('fanout migrate ' || current_schema(), 0)"

  /// Waits until a migration that is under way has ended.
  static func waitForMigration(_ database: Connection) throws(StoreError) {
    try database.query("SELECT pg_advisory_lock_shared(\(key))")
    try database.query("SELECT pg_advisory_unlock_shared(\(key))")
  }

  /// The SQL of all steps that `migrate` would take, empty if there are none.
  static func pending(_ database: Connection, settings: StoreSettings) throws(StoreError) -> String {
    try checkPlace(database)
    let from = try version(of: database)
    return (from..<max(from, newest)).map { step in
      "BEGIN;\n\(sql(ofStep: step, settings: settings))\nCOMMIT;\n"
    }.joined(separator: "\n")
  }

  /// Has Citus distribute the tables of the newest version. Repeating it does nothing.
  static func distribute(_ database: Connection) throws(StoreError) {
    try database.transaction { () throws(StoreError) in
      try database.query(Self.lock)
      if try isDistributed(database) { return }
      try database.execute(Citus.distribution)
    }
  }

  /// The SQL that `distribute` would run on tables of the newest version, empty if there is nothing to do.
  static func pendingDistribution(_ database: Connection) throws(StoreError) -> String {
    if try version(of: database) > 0, try isDistributed(database) { return "" }
    return "BEGIN;\n\(Citus.distribution)\nCOMMIT;\n"
  }

  static func isDistributed(_ database: Connection) throws(StoreError) -> Bool {
    try database.query("SELECT value FROM setting WHERE name = 'distributed'").first?.integer(0) == 1
  }

  /// Asks for what is needed of Citus, and not for its name.
  static func checkCitus(_ database: Connection) throws(StoreError) {
    let found = try database.integer(
      "SELECT count(*) FROM pg_proc WHERE proname = 'create_distributed_table' AND pg_function_is_visible(oid)")
    if found == 0 {
      throw StoreError(
        .schema,
        "the database has no Citus, so tables can't be distributed. Run CREATE EXTENSION citus first, on a server that has it, "
          + "and name the coordinator in the address of --store; or leave --distribute away.")
    }
  }

  private static func sql(ofStep step: Int, settings: StoreSettings) -> String {
    var sql = SchemaSteps.all[step] + "\n"
    if step == 0 {
      sql += """

        INSERT INTO setting(name, value) VALUES('feed_limit', \(settings.feedLimit));
        INSERT INTO setting(name, value) VALUES('own_posts', \(settings.includesOwnPosts ? 1 : 0));
        """
    }
    return sql + """

      INSERT INTO setting(name, value) VALUES('schema_version', \(step + 1))
        ON CONFLICT(name) DO UPDATE SET value = excluded.value;
      """
  }

  /// Checks what no migration can change.
  static func checkPlace(_ database: Connection) throws(StoreError) {
    let row = try database.query("SELECT current_schema(), current_setting('server_encoding')").first
    if row?.isNull(0) ?? true {
      throw StoreError(
        .schema,
        "no schema of the search_path exists. Make one with CREATE SCHEMA, or name another in the address of --store "
          + "(?options=-csearch_path%3DNAME).")
    }
    let encoding = row?.text(1) ?? ""
    if encoding != "UTF8" {
      throw StoreError(
        .schema,
        "the database has the encoding \(encoding), but ids may hold any character. Make one with CREATE DATABASE … "
          + "ENCODING 'UTF8' TEMPLATE template0.")
    }
  }

  /// The version of the tables, 0 if there are none.
  /// - Throws: `.schema` for another program's tables, or ones of a newer version than this program knows.
  static func version(of database: Connection) throws(StoreError) -> Int {
    let tables = try database.query(
      """
      SELECT c.relname::text, EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'value'
          AND a.atttypid = 'bigint'::regtype)
      FROM pg_class c WHERE c.relnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = current_schema())
        AND c.relname IN ('setting', 'edge', 'post', 'seen', 'feed', 'feed_row', 'feed_trim', 'feedback', 'follows',
          'likes', 'favorites') AND c.relkind IN ('r', 'p', 'v')
      """
    ).map { (name: $0.text(0), isOurs: $0.flag(1)) }
    if tables.isEmpty { return 0 }
    let isOurs = tables.contains { $0.name == "setting" && $0.isOurs }
    let version = isOurs ? try storedVersion(of: database) : 0
    if version < 1 {
      throw StoreError(
        .schema,
        "the schema holds tables of another program (\(tables.map(\.name).sorted().joined(separator: ", "))). Name another "
          + "schema or database in the address of --store (?options=-csearch_path%3DNAME).")
    }
    if version > newest {
      throw StoreError(
        .schema,
        "the store has schema version \(version), this program knows \(newest). Use a newer version of the program.")
    }
    return version
  }

  /// The version that tables of this program say they have, 0 if they don't.
  static func storedVersion(of database: Connection) throws(StoreError) -> Int {
    try database.query("SELECT value FROM setting WHERE name::text = 'schema_version'").first.map { Int($0.integer(0)) }
      ?? 0
  }

  static func settings(of database: Connection) throws(StoreError) -> StoreSettings {
    var settings = StoreSettings.standard
    for row in try database.query("SELECT name, value FROM setting").map({ ($0.text(0), $0.integer(1)) }) {
      switch row {
      case ("feed_limit", let value): settings.feedLimit = Int(value)
      case ("own_posts", let value): settings.includesOwnPosts = value != 0
      default: break
      }
    }
    return settings
  }
}
