import FanoutStore
import FanoutStoreTesting
import PostgresStore
import PostgresTesting
import Testing

@Suite("Opening a PostgreSQL store", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PostgresOpeningTests {
  private func error(_ body: () throws -> Void) -> StoreError? {
    do {
      try body()
      return nil
    } catch {
      return error as? StoreError
    }
  }

  @Test("a server that is not there is named, with what to do, and may come back")
  func noServer() {
    let address = "postgres://ann:secret@127.0.0.1:1/db"
    for access in [PostgresStore.Access.readOnly, .readWrite] {
      let error = error { _ = try PostgresStore(address: address, access: access, settings: nil) }
      #expect(error?.code == .unavailable)
      #expect(error?.message.contains("127.0.0.1") == true)
      #expect(error?.message.contains("secret") == false)
      #expect(error?.message.contains("\n") == false)
    }
  }

  @Test(
    "what waiting does not mend is told apart from what it may",
    .enabled(if: OwnPostgres.isInstalled, OwnPostgres.missing))
  func refusals() throws {
    let server = try OwnPostgres(rules: [
      "host all ann 127.0.0.1/32 scram-sha-256", "host all carl 127.0.0.1/32 reject", "host all all 127.0.0.1/32 trust",
    ])
    defer { server.stop() }
    try Connection(server.address).execute(
      """
      CREATE ROLE ann LOGIN PASSWORD 'right'; CREATE ROLE carl LOGIN; CREATE ROLE dora LOGIN CONNECTION LIMIT 0;
      CREATE ROLE erik LOGIN
      """)
    try Connection(server.address).execute("CREATE DATABASE closed")
    try Connection(server.address).execute("REVOKE CONNECT ON DATABASE closed FROM public")
    let place = try #require(server.address.split(separator: "@").last)
    func code(_ user: String, _ suffix: String = "") -> StoreError.Code? {
      error { _ = try Connection("postgres://\(user)@\(place)\(suffix)") }?.code
    }
    #expect(code("ann:right") == nil)
    #expect(code("ann:wrong") == .cannotOpen)
    #expect(code("ann", "?passfile=/none") == .cannotOpen, "no password for a server that wants one")
    #expect(code("nobody") == .cannotOpen)
    #expect(code("carl") == .cannotOpen)
    #expect(code("erik", "?dbname=closed") == .cannotOpen)
    #expect(code("erik", "?dbname=none") == .cannotOpen)
    #expect(code("erik", "?sslmode=none") == .cannotOpen)
    #expect(code("dora") == .unavailable, "too many connections")
    #expect(code("erik", "?target_session_attrs=standby") == .unavailable, "what is no standby may become one")
    try Connection(server.address).execute("ALTER ROLE erik SET default_transaction_read_only = on")
    #expect(code("erik", "?target_session_attrs=read-write") == .unavailable)
    try server.crash()
    #expect(code("ann:wrong") == .unavailable)
    #expect(code("erik", "?host=/none") == .unavailable)
    try server.start()
    #expect(code("ann:right") == nil)
  }

  @Test(
    "an address that libpq can't read is refused without quoting it",
    arguments: [
      "postgres://ann:%zzsecret@host/db", "postgres://ann@host/db?secret=1", "postgres://ann@host:5432:secret%/db",
    ])
  func malformed(address: String) {
    let error = error { _ = try PostgresStore(address: address, access: .readOnly, settings: nil) }
    #expect(error?.code == .cannotOpen)
    #expect(error?.message.contains("secret") == false)
  }

  @Test(
    "a password that is not percent-encoded is in no message, whatever libpq takes it for",
    arguments: [
      "postgres://ann:s3cret1@s3cret2@127.0.0.1:1/db", "postgres://ann:s3c/s3cret@127.0.0.1:1/db",
      "postgres://ann:p@s/s3cret@127.0.0.1:1/db", "postgres://ann:top?s3cret@127.0.0.1:1/db",
      "postgres://ann:s3cret:x@127.0.0.1:1/db", "postgres://127.0.0.1:1/db?user=ann&password=s3cret",
      "postgres://ann:s3cret#1@127.0.0.1:1/db", "host=s3cret password=s3cret port=1",
    ])
  func odd(address: String) {
    for access in [PostgresStore.Access.readOnly, .readWrite] {
      let error = error { _ = try PostgresStore(address: address, access: access, settings: nil) }
      #expect(error != nil && error?.message.contains("s3c") == false, "\(error?.message ?? "it was opened")")
    }
  }

  @Test(
    "nor is the shortest part of one, alone or with what stands beside it",
    arguments: [
      "aa:bb:cc:dd/longer", "q7:Zx:9p/rest", "ab/longer", "x@q1", "a:b", "zz", "7/x", "a@b@c/d?e",
    ])
  func short(password: String) {
    let parts = password.split { "/:@?".contains($0) }
    for address in [
      "postgres://ann:\(password)@127.0.0.1:1/db", "postgres://127.0.0.1:1/db?user=ann&password=\(password)",
    ] {
      let message = error { _ = try PostgresStore(address: address, access: .readOnly, settings: nil) }?.message ?? ""
      let quoted = message.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
        .filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
      // Words of the message itself, or the server's address, may hold a letter of it.
      for text in quoted where text != "127.0.0.1" {
        #expect(!parts.contains(where: text.contains), "\(message)")
      }
    }
  }

  @Test("tables are made for writing, and not for reading")
  func missingTables() throws {
    let address = try ScratchSchema().address
    let refusal = error { _ = try PostgresStore(address: address, access: .readOnly, settings: nil) }
    #expect(refusal?.code == .schema)
    #expect(refusal?.message.contains("fanout migrate") == true)
    let settings = StoreSettings(feedLimit: 7, includesOwnPosts: false)
    #expect(try PostgresStore(address: address, access: .readWrite, settings: settings).settings == settings)
    #expect(try PostgresStore(address: address, access: .readOnly, settings: nil).settings == settings)
    let other = error { _ = try PostgresStore(address: address, access: .readWrite, settings: .standard) }
    #expect(other?.code == .schema)
    #expect(other?.message.contains("feed limit 7") == true)
  }

  @Test("another program's tables are refused, and left as they were")
  func otherProgram() throws {
    let address = try ScratchSchema().address
    try Connection(address).execute("CREATE TABLE post(a int); INSERT INTO post VALUES(7)")
    for access in [PostgresStore.Access.readOnly, .readWrite] {
      let error = error { _ = try PostgresStore(address: address, access: access, settings: nil) }
      #expect(error?.code == .schema && error?.message.contains("another program") == true)
    }
    #expect(error { _ = try PostgresStore.migrate(address: address) }?.code == .schema)
    #expect(try Connection(address).integer("SELECT a FROM post") == 7)
  }

  @Test("a schema that does not exist is refused, with the remedy")
  func noSchema() throws {
    let address = ScratchSchema.address(of: "not_there", on: try #require(PostgresServer.address))
    for opening in [
      { _ = try PostgresStore.migrate(address: address) },
      { _ = try PostgresStore(address: address, access: .readOnly, settings: nil) },
      { _ = try PostgresStore(address: address, access: .readWrite, settings: nil) },
    ] {
      let error = error(opening)
      #expect(error?.code == .schema)
      #expect(error?.message.contains("CREATE SCHEMA") == true)
    }
  }

  @Test("a newer schema is refused, and says so")
  func newerSchema() throws {
    let address = try ScratchSchema().address
    _ = try PostgresStore.migrate(address: address)
    try Connection(address).execute("UPDATE setting SET value = 99 WHERE name = 'schema_version'")
    for access in [PostgresStore.Access.readOnly, .readWrite] {
      let error = error { _ = try PostgresStore(address: address, access: access, settings: nil) }
      #expect(error?.code == .schema)
      #expect(error?.message.contains("99") == true)
    }
    #expect(error { _ = try PostgresStore.migrate(address: address) }?.code == .schema)
  }

  @Test("migration makes a store, its dry run says how, and its repetition does nothing")
  func migration() throws {
    let address = try ScratchSchema().address
    let sql = try PostgresStore.migrationSQL(address: address)
    #expect(sql.contains("CREATE TABLE edge"))
    #expect(try Connection(address).integer("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()") == 0)
    let first = try PostgresStore.migrate(address: address, settings: StoreSettings(feedLimit: 3))
    #expect(first.from == 0 && first.to > 0)
    let again = try PostgresStore.migrate(address: address, settings: StoreSettings(feedLimit: 4))
    #expect(again.from == first.to && again.to == first.to)
    #expect(try PostgresStore.migrationSQL(address: address).isEmpty)
    #expect(try PostgresStore(address: address, access: .readOnly, settings: nil).settings.feedLimit == 3)
    // The printed SQL makes the same.
    let other = try ScratchSchema().address
    try Connection(other).execute(sql)
    #expect(try PostgresStore(address: other, access: .readOnly, settings: nil).settings == .standard)
  }

  @Test("several that make one store at once all get it", arguments: 0..<10)
  func racing(round: Int) async throws {
    let address = try ScratchSchema().address
    try await withThrowingTaskGroup(of: StoreSettings.self) { group in
      for worker in 0..<4 {
        group.addTask {
          try await onThread {
            if worker % 2 == 0 { _ = try PostgresStore.migrate(address: address) }
            return try PostgresStore(address: address, access: .readWrite, settings: nil).settings
          }
        }
      }
      for try await settings in group { #expect(settings == .standard) }
    }
  }

  @Test("a store opened for reading reads what is written meanwhile, and refuses to write")
  func readOnly() throws {
    let place = try Place()
    let writer = place.store
    let reader = try place.open(.readOnly)
    let scenario = try Scenario({ _ in writer })
    try scenario.apply(.follow("a", "b", at: 1), .published("b", "p", at: 1))
    #expect(try DumpLines.of(reader) == DumpLines.of(writer))
    let batch = Scenario.batch([.follow("c", "b", at: 1)])
    #expect(error { _ = try reader.commitFacts(batch) }?.code == .refused)
    #expect(error { _ = try reader.deriveViews(of: batch, sliceSize: 1) }?.code == .refused)
  }

  @Test("a connection that is cut fails one call, as transient, and the next connects anew")
  func reconnecting() throws {
    let place = try Place()
    let name = "cut\(UInt64.random(in: 0...UInt64.max))"
    let store = try PostgresStore(
      address: place.address + "&application_name=\(name)", access: .readWrite, settings: nil)
    let scenario = try Scenario({ _ in store })
    try scenario.apply(.follow("a", "b", at: 1))
    // Reads and writes have connections of their own; both are cut.
    try place.execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '\(name)'")
    var failures: [StoreError] = []
    for _ in 0..<3 {
      do {
        try scenario.apply(.published("b", "p", at: 1))
        break
      } catch let error as StoreError { failures.append(error) }
    }
    #expect(failures.count <= 2)
    #expect(failures.filter { !$0.isTransient }.isEmpty)
    let failure = error { _ = try DumpLines.of(store) }
    #expect(failure?.isTransient != false)
    #expect(try DumpLines.of(store).count == 4)
  }

  @Test(
    "a server that is stopped in its tracks is given up after a while, as transient, and used again when it goes on",
    .enabled(if: OwnPostgres.isInstalled, OwnPostgres.missing))
  func frozen() throws {
    let server = try OwnPostgres()
    defer { server.stop() }
    let store = try PostgresStore(
      address: server.address, access: .readWrite, settings: nil, hooks: StepHooks(), patience: 1)
    let scenario = try Scenario({ _ in store })
    try scenario.apply(.follow("a", "b", at: 1))
    let before = try DumpLines.of(store).count
    try server.freeze()
    let batch = Scenario.batch([.follow("c", "b", at: 1)])
    // Each by the connection that is at hand.
    for call in [{ _ = try store.commitFacts(batch) }, { _ = try DumpLines.of(store) }] {
      let failure = error(call)
      #expect(failure?.code == .unavailable && failure?.message.contains("has not answered for 1 s") == true)
    }
    try server.thaw()
    // Whether or not the server still does what it was asked for.
    try scenario.apply(.follow("c", "b", at: 1))
    #expect(try DumpLines.of(store).count == before + 2)
  }
}
