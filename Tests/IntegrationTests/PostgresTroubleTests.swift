import Foundation
import PostgresStore
import PostgresTesting
import SocialEvents
import Testing

@Suite(
  "PostgreSQL refuses for the time being (SPEC 7)", .crowded,
  .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PostgresTroubleTests {
  /// What PostgreSQL answers when nothing is wrong with the values.
  private static let passing = [
    "08000", "08006", "08P01", "25P03", "25P04", "40001", "40003", "40P01", "53000", "53100", "53200", "53300", "53400",
    "55P03", "57000", "57014", "57P01", "57P02", "57P03", "57P05", "58000", "58030", "58P01", "72000",
    // What somebody has to mend: privileges, tables, files that the server may not open, its own errors.
    "0A000", "26000", "42501", "42703", "42883", "42P01", "42P05", "XX000",
  ]

  @Test(
    "every SQLSTATE of trouble that passes is waited out, at a statement and at a commit",
    arguments: ["IMMEDIATE", "DEFERRED"])
  func codes(time: String) async throws {
    let schema = try ScratchSchema()
    let database = SharedConnection(schema.address)
    let deployment = try await Deployment.start(on: .embedded, store: .postgresAt(schema.address))
    try await deployment.run(["migrate"])
    try database.execute(
      """
      CREATE TABLE trouble(code text);
      INSERT INTO trouble VALUES(NULL);
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE state text := (SELECT code FROM trouble);
        BEGIN
          IF state IS NOT NULL THEN RAISE 'injected' USING ERRCODE = state; END IF;
          RETURN NULL;
        END
      $$;
      CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON edge DEFERRABLE INITIALLY \(time) FOR EACH ROW
        EXECUTE FUNCTION refuse()
      """)
    func answer(_ code: String) throws { try database.execute("UPDATE trouble SET code = \(code)") }
    let endurance = try await Endurance.start(deployment)
    for code in Self.passing {
      try await endurance.outlasts("SQLSTATE \(code)") {
        try answer("'\(code)'")
      } work: {
        try await deployment.emit(lines: Lines.follow(code, "x", id: code) + "\n")
      } mend: {
        try answer("NULL")
      }
    }
    try await endurance.ends()
    #expect(try await edges(deployment) == Self.passing.sorted().map { Lines.followEdge($0, "x") })
  }

  @Test("an event that somebody's trigger raises an exception for goes to the dead letters alone")
  func trigger() async throws {
    let schema = try ScratchSchema()
    let database = SharedConnection(schema.address)
    let deployment = try await Deployment.start(on: .embedded, store: .postgresAt(schema.address))
    try await deployment.run(["migrate"])
    try database.execute(
      """
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE 'not this one'; END
      $$;
      CREATE TRIGGER refuse BEFORE INSERT ON edge FOR EACH ROW WHEN (NEW.actor_id = 'u3') EXECUTE FUNCTION refuse()
      """)
    try await deployment.emit(lines: (0..<9).map { Lines.follow("u\($0)", "x", id: "\($0)") }.joinedLines)
    #expect(try await deployment.catchUp().deadLetters == 1)
    #expect(try deployment.records(of: [deployment.topics.deadLetters]).map { $0.header("ce_id") } == ["3"])
    #expect(try await edges(deployment).count == 8)
  }

  @Test("what is taken from a worker and given back: a privilege, a table, the place of its tables")
  func taken() async throws {
    let schema = try ScratchSchema()
    let database = SharedConnection(schema.address)
    let role = "worker_\(UInt32.random(in: 0...UInt32.max))"
    let deployment = try await Deployment.start(on: .embedded, store: .postgresAt(schema.address))
    try await deployment.run(["migrate"])
    let name = try database.withConnection { try $0.text("SELECT current_schema()") }
    try database.execute(
      """
      CREATE ROLE \(role) LOGIN;
      GRANT USAGE ON SCHEMA \(name) TO \(role);
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \(name) TO \(role)
      """)
    defer { try? database.execute("DROP OWNED BY \(role); DROP ROLE \(role)") }
    let own = try await Deployment.start(
      on: .embedded, store: .postgresAt(schema.address.replacing(/\/\/[^@]*@/, with: "//\(role)@")))
    let endurance = try await Endurance.start(own)
    for (number, (message, take, give)) in [
      ("SQLSTATE 42501", "REVOKE INSERT ON edge FROM \(role)", "GRANT INSERT ON edge TO \(role)"),
      ("SQLSTATE 42P01", "REVOKE USAGE ON SCHEMA \(name) FROM \(role)", "GRANT USAGE ON SCHEMA \(name) TO \(role)"),
      ("SQLSTATE 42P01", "ALTER TABLE edge RENAME TO other", "ALTER TABLE other RENAME TO edge"),
      ("SQLSTATE 42703", "ALTER TABLE edge RENAME actor TO other", "ALTER TABLE edge RENAME other TO actor"),
    ].enumerated() {
      try await endurance.outlasts(message, tries: 3) {
        try database.execute(take)
      } work: {
        try await own.emit(lines: Lines.follow("u\(number)", "x", id: "\(number)") + "\n")
      } mend: {
        try database.execute(give)
      }
    }
    try await endurance.ends()
    #expect(try await edges(deployment).count == 4)
    // Whoever waits for the end is told instead.
    try database.execute("REVOKE INSERT ON edge FROM \(role)")
    try await own.emit(lines: Lines.follow("v", "x", id: "v") + "\n")
    let refusal = try await own.run(["worker", "--until-caught-up"], expecting: 1)
    #expect(refusal.error.contains("permission denied for table edge"), "\(refusal.error)")
  }

  @Test("tables that a newer version has changed end the worker, which is not ready then")
  func migrated() async throws {
    let schema = try ScratchSchema()
    let deployment = try await Deployment.start(on: .embedded, store: .postgresAt(schema.address))
    let readyFile = deployment.folder.file("ready")
    let worker = try deployment.startWorker(["--ready-file", readyFile])
    try await worker.isAssigned()
    try await eventually("it is ready", else: worker.report) { FileManager.default.fileExists(atPath: readyFile) }
    try SharedConnection(schema.address).execute(
      "ALTER TABLE edge RENAME actor TO other; UPDATE setting SET value = 99 WHERE name = 'schema_version'")
    try await deployment.emit(lines: Lines.follow("u", "x", id: "1") + "\n")
    #expect(try await worker.end() == 1)
    #expect(worker.standardError.contains("migrated while this program had them open"), "\(worker.report)")
    #expect(!FileManager.default.fileExists(atPath: readyFile))
  }

  @Test("statements that take too long: batches become smaller until the server gets them done")
  func slow() async throws {
    let schema = try ScratchSchema()
    let database = SharedConnection(schema.address)
    let deployment = try await Deployment.start(on: .embedded, store: .postgresAt(schema.address))
    try await deployment.run(["migrate"])
    // As if each statement could write no more than that before its time is up.
    try database.execute(
      """
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF (SELECT count(*) FROM new_rows) > 3 THEN RAISE 'too long' USING ERRCODE = '57014'; END IF;
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER refuse AFTER INSERT ON edge REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
        EXECUTE FUNCTION refuse()
      """)
    try await deployment.emit(lines: (0..<1000).map { Lines.follow("u\($0)", "x", id: "\($0)") }.joinedLines)
    #expect(try await deployment.catchUp().deadLetters == 0)
    #expect(try await edges(deployment).count == 1000)
  }

  @Test("a table that somebody locks, and statements that somebody cancels")
  func locked() async throws {
    let schema = try ScratchSchema()
    let name = "locked\(UInt32.random(in: 0...UInt32.max))"
    let deployment = try await Deployment.start(
      on: .embedded, store: .postgresAt(address(schema.address, with: "application_name=\(name)")))
    let endurance = try await Endurance.start(deployment)
    let locker = SharedConnection(schema.address)
    let canceller = SharedConnection(schema.address)
    try await endurance.outlasts("SQLSTATE 55P03") {
      try locker.execute("BEGIN")
      try locker.execute("LOCK TABLE edge IN ACCESS EXCLUSIVE MODE")
    } work: {
      try await deployment.emit(lines: Lines.follow("ann", "bob", id: "1") + "\n")
      try await eventually("a statement is cancelled", else: endurance.worker.report) {
        try canceller.integer(
          """
          SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
          WHERE application_name = '\(name)' AND wait_event_type = 'Lock'
          """) > 0
      }
      try await endurance.worker.says("SQLSTATE 57014")
    } mend: {
      try locker.execute("ROLLBACK")
    }
    try await endurance.ends()
    #expect(try await edges(deployment) == [Lines.followEdge("ann", "bob")])
    schema.drop()
  }

  private func edges(_ deployment: Deployment) async throws -> [String] {
    try await deployment.dump().filter { $0.hasPrefix(#"{"view":"edge""#) }.map(String.init).sorted()
  }
}
