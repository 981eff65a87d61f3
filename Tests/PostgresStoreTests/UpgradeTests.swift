import FanoutStore
import FanoutStoreTesting
import Foundation
import PostgresStore
import PostgresTesting
import SocialEvents
import Testing

@Suite("Upgrading a PostgreSQL store", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct UpgradeTests {
  private static let settings = StoreSettings(feedLimit: 3, includesOwnPosts: true)

  /// Tables of version 1 as a worker of that time has filled them: it wrote the same rows into tables of other names.
  private func filledVersion1(with events: [Event]) throws -> (address: String, lines: [[UInt8]]) {
    let address = try ScratchSchema().address
    try PostgresStore.makeTables(address: address, settings: Self.settings, version: 1)
    let newest = try ScratchSchema().address
    let schema = try Connection(newest).text("SELECT current_schema()::text")
    let store = try PostgresStore(address: newest, access: .readWrite, settings: Self.settings)
    let scenario = try Scenario({ _ in store }, feedLimit: 3, ownPosts: true)
    try scenario.apply(events)
    let old = try Connection(address)
    for (table, now) in [
      ("edge", "edge"), ("post", "post"), ("seen", "seen"), ("feed", "feed_row"), ("feed_trim", "feed_trim"),
    ] {
      try old.execute("INSERT INTO \(table) SELECT * FROM \(schema).\(now)")
    }
    return (address, try DumpLines.of(store))
  }

  private static let events: [Event] =
    (0..<9).map { .published("b", "p\($0)", at: Int64($0)) } + [
      .follow("a", "b", at: 1), .like("a", "b", "p8", at: 2), .favorite("c", "b", "p7", at: 3), .deleted("b", "p1"),
      .follow("c", "b", at: 5, silent: true), .seen("b", upTo: 1), .follow("d", "b", at: 6), .unfollow("d", "b", at: 7),
    ]

  @Test("of version 1 keeps all data, and goes on working")
  func version1() throws {
    let (address, lines) = try filledVersion1(with: Self.events)
    #expect(try Connection(address).integer("SELECT count(*) FROM feed") > 0)

    for access in [PostgresStore.Access.readOnly, .readWrite] {
      let refusal = #expect(throws: StoreError.self) {
        _ = try PostgresStore(address: address, access: access, settings: nil)
      }
      #expect(refusal?.code == .schema && refusal?.message.contains("version 1, this program needs") == true)
    }

    #expect(try PostgresStore.migrationSQL(address: address).contains("RENAME TO feed_row"))
    let migrated = try PostgresStore.migrate(address: address)
    #expect(migrated.from == 1 && migrated.to > 1)
    let store = try PostgresStore(address: address, access: .readWrite, settings: Self.settings)
    #expect(try DumpLines.of(store) == lines)

    // Refills and retractions that rest on what was stored before.
    let later: [Event] = [
      .deleted("b", "p8"), .deleted("b", "p7"), .unfollow("a", "b", at: 9), .follow("a", "b", at: 10),
    ]
    let batch = Scenario.batch(later)
    _ = try store.commitFacts(batch)
    _ = try store.deriveViews(of: batch, sliceSize: 5000)
    let whole = try Place(settings: Self.settings)
    let scenario = try Scenario({ _ in whole.store }, feedLimit: 3, ownPosts: true)
    try scenario.apply(Self.events + later)
    #expect(try DumpLines.of(store) == DumpLines.of(whole.store))
  }

  /// So it is also when several workers are the first on an empty schema, since each step is a transaction of its own.
  @Test("under way is waited for by who opens the store meanwhile", arguments: [false, true])
  func opening(forWriting: Bool) async throws {
    let address = try ScratchSchema().address
    try PostgresStore.makeTables(address: address, settings: Self.settings, version: 1)
    let migrating = try Connection(address)
    let key = "hashtextextended('fanout migrate ' || current_schema(), 0)"
    _ = try migrating.text("SELECT pg_advisory_lock(\(key))::text")
    async let opened = onThread {
      try PostgresStore(address: address, access: forWriting ? .readWrite : .readOnly, settings: Self.settings)
    }
    let waiting = """
      SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND ((classid::bigint << 32) | objid::bigint) = \(key)
      """
    // By turns, not by the clock: where other tests hold the threads, the one that opens may begin minutes later.
    var looks = 0
    while try migrating.integer(waiting) == 0 {
      looks += 1
      try #require(looks < 6000, "nobody waits")
      try await Task.sleep(for: .milliseconds(10))
    }
    try migrating.execute(try PostgresStore.migrationSQL(address: address))
    _ = try migrating.text("SELECT pg_advisory_unlock(\(key))::text")
    #expect(try await opened.settings == Self.settings)
  }

  @Test("by several at once takes each step once")
  func concurrently() async throws {
    let (address, lines) = try filledVersion1(with: Self.events)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<6 { group.addTask { _ = try PostgresStore.migrate(address: address) } }
      try await group.waitForAll()
    }
    #expect(try DumpLines.of(PostgresStore(address: address, access: .readOnly, settings: nil)) == lines)
  }
}
