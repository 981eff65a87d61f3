import PostgresTesting
import SocialEvents
import Testing

@Suite(
  "PostgreSQL refuses for the time being (SPEC 7)", .crowded,
  .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PostgresTroubleTests {
  /// What PostgreSQL answers when nothing is wrong with the statement.
  private static let passing = [
    "08000", "08006", "08P01", "25P03", "25P04", "40001", "40003", "40P01", "53000", "53100", "53200", "53300", "53400",
    "55P03", "57000", "57014", "57P01", "57P02", "57P03", "57P05", "58000", "58030", "58P01", "72000",
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
    #expect(try await edges(deployment) == Self.passing.map { Lines.followEdge($0, "x") })
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
