import FanoutStore
import FanoutStoreTesting
import Foundation
import PostgresStore
import PostgresTesting
import SocialEvents
import Synchronization
import Testing

/// What can be shown of the statements for Citus without Citus: that they mean the same and bear the same races. That
/// Citus takes them, `CitusTests` shows.
@Suite("Statements for Citus, on PostgreSQL", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct CitusStatementTests {
  @Test("conform", arguments: StoreConformance.checks)
  func conform(check: StoreConformance.Check) throws { try CitusTests.conform(check, .distributedInNameOnly) }

  /// The first 300 of the histories of `PostgresConvergenceTests`.
  @Test("converge", arguments: 0..<2)
  func converge(chunk: Int) {
    PostgresConvergenceTests.check(
      PostgresConvergenceTests.seeds.prefix(300).filter { $0 % 2 == UInt64(chunk) }, layout: .distributedInNameOnly)
  }

  /// The first 200 of the schedules of `ConcurrentScheduleTests`.
  @Test("converge when four write at once, whoever does what first", arguments: [false, true])
  func schedules(pauses: Bool) async throws {
    let hooks = StepHooks(reached: pauses ? ConcurrentScheduleTests.pause : nil)
    try await CitusTests.converge(ConcurrentScheduleTests.seeds.prefix(200), hooks, .distributedInNameOnly)
  }

  @Test("each pair at each boundary, whichever is newer", arguments: InterleavingTests.Action.allCases)
  func pairs(stopped: InterleavingTests.Action) async throws {
    try await InterleavingTests.run(
      stopped, with: InterleavingTests.Action.allCases, StepHooks(), layout: .distributedInNameOnly
    ) { Issue.record("\($0)") }
  }

  @Test(
    "without the check after the commit the views come out wrong",
    arguments: zip(InterleavingTests.unsafe.map(\.stopped), InterleavingTests.unsafe.map(\.other)))
  func mutation(stopped: InterleavingTests.Action, other: InterleavingTests.Action) async throws {
    var wrong: [String] = []
    try await InterleavingTests.run(
      stopped, with: [other], StepHooks(checksAfterCommit: false), layout: .distributedInNameOnly
    ) { wrong.append($0) }
    #expect(!wrong.isEmpty)
  }

  @Test("make the same of a crowd")
  func crowd() async throws { try await CitusTests.crowd(.distributedInNameOnly) }

  @Test("show other services what readers of the store are shown")
  func views() throws { try CitusTests.views(.distributedInNameOnly) }

  // MARK: Distribution

  /// A schema without tables, where functions stand in for Citus's.
  private func emptySchema(standIn: Bool = true) throws -> String {
    let address = try ScratchSchema().address
    if standIn { try Connection(address).execute(CitusServer.standIn) }
    return address
  }

  private static let calls = "SELECT concat_ws(' ', name, relation, by, beside) FROM citus_call ORDER BY place"
  private static let expectedCalls = """
    create_distributed_table edge recipient none
    create_distributed_table post author edge
    create_distributed_table seen owner edge
    create_distributed_table feed_row owner edge
    create_distributed_table feed_trim owner edge
    create_reference_table setting
    """

  @Test("migrate --distribute asks Citus for each table once, by what its keys hold; its dry run says how")
  func distribution() throws {
    let address = try emptySchema()
    let sql = try PostgresStore.migrationSQL(address: address, distributing: true)
    _ = try PostgresStore.migrate(address: address, distributing: true)
    #expect(try Connection(address).text(Self.calls) == Self.expectedCalls)
    _ = try PostgresStore.migrate(address: address, distributing: true)
    #expect(try Connection(address).text(Self.calls) == Self.expectedCalls)
    #expect(try PostgresStore.migrationSQL(address: address, distributing: true).isEmpty)
    // The printed SQL does the same.
    let other = try emptySchema()
    try Connection(other).execute(sql)
    #expect(try Connection(other).text(Self.calls) == Self.expectedCalls)
    #expect(try PostgresStore.migrationSQL(address: other, distributing: true).isEmpty)
  }

  @Test("several that distribute one store at once do it once")
  func racing() async throws {
    let address = try emptySchema()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<6 {
        group.addTask { _ = try await onThread { try PostgresStore.migrate(address: address, distributing: true) } }
      }
      try await group.waitForAll()
    }
    #expect(try Connection(address).text(Self.calls) == Self.expectedCalls)
  }

  @Test("a store that is distributed later shows what it showed before, and goes on working")
  func later() throws {
    let address = try emptySchema()
    let settings = StoreSettings(feedLimit: 3, includesOwnPosts: true)
    let whole = try PostgresStore(address: address, access: .readWrite, settings: settings)
    let before = try Scenario({ _ in whole }, feedLimit: 3, ownPosts: true)
    try before.apply((0..<9).map { .published("b", "p\($0)", at: Int64($0)) })
    try before.apply(.follow("a", "b", at: 1), .like("a", "b", "p8", at: 2), .seen("b", upTo: 1), .deleted("b", "p7"))
    let lines = try DumpLines.of(whole)
    _ = try PostgresStore.migrate(address: address, settings: settings, distributing: true)
    let distributed = try PostgresStore(address: address, access: .readWrite, settings: settings)
    #expect(try DumpLines.of(distributed) == lines)
    let after = try Scenario({ _ in distributed }, feedLimit: 3, ownPosts: true)
    try after.apply(.unfollow("a", "b", at: 2))
    #expect(try distributed.feed(of: UserID(unchecked: "a"), after: nil, limit: 9).isEmpty)
    try after.apply(.follow("a", "b", at: 3))
    #expect(try distributed.feed(of: UserID(unchecked: "a"), after: nil, limit: 9).count == 3)
  }

  @Test("without Citus nothing is made, and the remedy is named")
  func noCitus() throws {
    let address = try emptySchema(standIn: false)
    for isDry in [true, false] {
      let refusal = #expect(throws: StoreError.self) {
        if isDry { _ = try PostgresStore.migrationSQL(address: address, distributing: true) }
        _ = try PostgresStore.migrate(address: address, distributing: true)
      }
      #expect(refusal?.code == .schema && refusal?.message.contains("CREATE EXTENSION citus") == true)
    }
    #expect(try Connection(address).integer("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()") == 0)
  }

  /// A trigger warns as Citus's coordinator does when a node was lost in the second phase of a commit.
  @Test("a commit that a node has not confirmed counts as failed, and is repeated", arguments: [1, 2])
  func unconfirmed(kinds: Int) throws {
    let place = try Place(layout: .distributedInNameOnly)
    try place.execute(
      """
      CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE WARNING 'failed to commit transaction on node:5432'; RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON edge DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION warn();
      """)
    defer { try? place.execute("DROP FUNCTION warn CASCADE") }
    // One kind of fact is a statement alone, two are a transaction.
    let events: [Event] = [.follow("a", "b", at: 1), .published("b", "p", at: 1)]
    let batch = Scenario.batch(Array(events.prefix(kinds)))
    let failure = #expect(throws: StoreError.self) { _ = try place.store.commitFacts(batch) }
    #expect(failure?.code == .unavailable && failure?.isTransient == true)
    // It was committed all the same, so this changes nothing and warns of nothing.
    #expect(try place.store.commitFacts(batch) == 0)
  }
}

/// On a Citus cluster, for real. `migrate --distribute` makes each store.
@Suite("Citus", .serialized, .enabled(if: CitusServer.isPresent, CitusServer.missing))
struct CitusTests {
  @Test("conforms", arguments: StoreConformance.checks)
  func conforms(check: StoreConformance.Check) throws { try Self.conform(check, .distributed) }

  @Test("converges")
  func converges() {
    PostgresConvergenceTests.check(Array(PostgresConvergenceTests.seeds.prefix(300)), layout: .distributed)
  }

  @Test("converges when four write at once, whoever does what first", arguments: [false, true])
  func schedules(pauses: Bool) async throws {
    let hooks = StepHooks(reached: pauses ? ConcurrentScheduleTests.pause : nil)
    try await Self.converge(ConcurrentScheduleTests.seeds.prefix(100), hooks, .distributed)
  }

  @Test("makes of a crowd what the specification makes of it")
  func crowd() async throws { try await Self.crowd(.distributed) }

  @Test("shows other services what readers of the store are shown")
  func views() throws { try Self.views(.distributed) }

  @Test("has distributed the tables by who reads them, all in one group")
  func tables() throws {
    let place = try Place(layout: .distributed)
    let distributed = """
      SELECT count(*) FROM citus_tables
      WHERE table_name IN ('edge'::regclass, 'post', 'seen', 'feed_row', 'feed_trim') AND citus_table_type = 'distributed'
        AND colocation_id = (SELECT colocation_id FROM citus_tables WHERE table_name = 'edge'::regclass)
      """
    #expect(try place.integer(distributed) == 5)
  }
}

// MARK: -

extension CitusTests {
  static func conform(_ check: StoreConformance.Check, _ layout: Place.Layout) throws {
    var places: [Place] = []
    try check.run { settings in
      let place = try Place(settings: settings, layout: layout)
      places.append(place)
      return place.store
    }
  }

  static func converge(_ seeds: some Sequence<UInt64>, _ hooks: StepHooks, _ layout: Place.Layout) async throws {
    for seed in seeds {
      if let difference = try await ConcurrentScheduleTests.difference(seed: seed, hooks: hooks, layout: layout) {
        Issue.record("\(difference)")
      }
    }
  }

  /// 12,000 events of 400 users, some of them much followed, by four writers at once, in shuffled order.
  static func crowd(_ layout: Place.Layout) async throws {
    let settings = StoreSettings(feedLimit: 20, includesOwnPosts: true)
    var generator = SystemRandomNumberGenerator()
    let events = (0..<12_000).map { number -> Event in
      let time = Int64(number + 1)
      let actor = "u\(Int.random(in: 0..<400, using: &generator))"
      // The square makes some far more popular than others.
      let author = "u\(Int.random(in: 0..<20, using: &generator) * Int.random(in: 0..<20, using: &generator) + 1)"
      let post = "p\(Int.random(in: 0..<30, using: &generator))"
      if actor == author { return .published(author, post, at: time) }
      return switch Int.random(in: 0..<20, using: &generator) {
      case 0..<9: .follow(actor, author, at: time)
      case 9..<11: .unfollow(actor, author, at: time)
      case 11..<15: .published(author, post, at: time)
      case 15: .deleted(author, post, at: time)
      case 16..<18: .like(actor, author, post, at: time)
      case 18: .unlike(actor, author, post, at: time)
      default: .seen(author, upTo: time)
      }
    }
    let expected = MemoryStore(settings: settings)
    try apply(events, to: expected)
    let place = try Place(settings: settings, layout: layout)
    let shuffled = events.shuffled(using: &generator)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<4 {
        let share = stride(from: worker, to: shuffled.count, by: 4).map { shuffled[$0] }
        group.addTask { try await onThread { try apply(share, to: place.store) } }
      }
      try await group.waitForAll()
    }
    #expect(DumpLines.difference(try DumpLines.of(place.store), from: try DumpLines.of(expected)) == nil)
    #expect(try place.integer(Place.leftovers) == 0)
  }

  private static func apply(_ events: [Event], to store: any Store) throws {
    for start in stride(from: 0, to: events.count, by: 250) {
      let batch = Scenario.batch(Array(events[start..<min(start + 250, events.count)]))
      while true {
        do throws(StoreError) {
          _ = try store.commitFacts(batch)
          for slice in try store.deriveViews(of: batch, sliceSize: 100).slices {
            _ = try store.derive(slice, sliceSize: 100)
          }
          break
        } catch {
          if !error.isTransient { throw error }
        }
      }
    }
  }

  static func views(_ layout: Place.Layout) throws {
    let place = try Place(settings: StoreSettings(feedLimit: 2, includesOwnPosts: true), layout: layout)
    let scenario = try Scenario({ _ in place.store }, feedLimit: 2, ownPosts: true)
    try scenario.apply((0..<9).map { .published("b", "p\($0)", at: Int64($0)) })
    try scenario.apply(
      .follow("a", "b", at: 1), .like("a", "b", "p8", at: 2), .favorite("a", "b", "p7", at: 3),
      .like("b", "b", "p8", at: 4),
      .follow("c", "b", at: 5, silent: true), .seen("b", upTo: 1), .follow("d", "b", at: 6))
    func expectCounts(_ counts: [String: Int]) throws {
      for (sql, count) in counts { #expect(try place.integer("SELECT count(*) FROM \(sql)") == count, "\(sql)") }
    }
    try expectCounts([
      "feedback WHERE owner = fanout_key('b')": 4, "feedback WHERE owner = fanout_key('b') AND seen": 1,
      "follows WHERE subject = fanout_key('b')": 3, "likes WHERE subject = fanout_key('b', 'p8')": 2,
      "favorites WHERE actor = fanout_key('a') AND post_id = 'p7'": 1,
      "feed_of(fanout_key('a')) WHERE author_id = 'b' AND post_id = 'p8'": 1, "feed_of(fanout_key('c'))": 3,
    ])
    // Facts only: what is to be taken away is still there, and must not be shown.
    try scenario.commit([.deleted("b", "p8"), .unfollow("c", "b", at: 9), .unfollow("d", "b", at: 9)])
    try expectCounts([
      "feedback WHERE owner = fanout_key('b')": 2, "follows WHERE subject = fanout_key('b')": 1,
      "likes": 0, "feed_of(fanout_key('a')) WHERE post_id = 'p8'": 0, "feed_of(fanout_key('c'))": 0,
    ])
  }
}
