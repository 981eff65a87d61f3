import FanoutStore
import FanoutStoreTesting
import Foundation
import PostgresStore
import PostgresTesting
import SocialEvents
import Testing

/// What statements read must be in proportion to what they are about, whenever their plans were made: a worker's connection
/// stays open while tables grow from nothing, and the statistics of tables are those of some time ago.
@Suite("Plans of statements on PostgreSQL", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PlanTests {
  private static let tables = "edge, post, feed_row, feed_trim, seen"

  /// - Parameter rounds: how many a worker does before the tables grow; it does two more afterwards.
  @Test("never read a table as a whole", arguments: [0, 1, 2], [false, true])
  func growth(rounds: Int, isAnalyzed: Bool) throws {
    let place = try Place(settings: StoreSettings(feedLimit: 10, includesOwnPosts: true))
    try place.execute("TRUNCATE \(Self.tables)")
    if isAnalyzed { try place.execute("ANALYZE \(Self.tables)") }
    let before = try place.integer(Self.reads)
    let name = "plans-\(UInt64.random(in: 0...UInt64.max))"
    do {
      let store = try PostgresStore(
        address: place.address + "&application_name=\(name)", access: .readWrite, settings: nil)
      for round in 0..<rounds {
        try Self.apply(round, to: store)
        if isAnalyzed { try place.execute("ANALYZE \(Self.tables)") }
      }
      try place.execute(Self.crowd)
      for round in rounds..<rounds + 2 { try Self.apply(round, to: store) }
    }
    // A connection's counts are certain to be there once it has ended.
    let deadline = Date.now.addingTimeInterval(60)
    while try place.integer("SELECT count(*) FROM pg_stat_activity WHERE application_name = '\(name)'") > 0 {
      try #require(Date.now < deadline, "the store's connections stay open")
    }
    // The tables hold 30,000 rows each, so one of them read as a whole would show.
    #expect(try place.integer(Self.reads) - before < 28_000)
  }

  private static let reads =
    "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = current_schema()"

  /// Other people's edges, posts and feeds.
  private static let crowd = """
    INSERT INTO edge(kind, state, time, actor, subject, recipient, event, actor_id, recipient_id)
      SELECT 0, 0, 1, fanout_key('x' || i), fanout_key('y' || i % 100), fanout_key('y' || i % 100), 'e' || i, 'x' || i,
        'y' || i % 100 FROM generate_series(1, 30000) i;
    INSERT INTO post(at, time, key, author, deleted, former, event, author_id, post_id)
      SELECT i, 1, fanout_key('y' || i % 100, 'p' || i), fanout_key('y' || i % 100), false, '{}', 'e' || i,
        'y' || i % 100, 'p' || i FROM generate_series(1, 30000) i;
    INSERT INTO feed_row(owner, at, post)
      SELECT fanout_key('x' || i), i, fanout_key('y' || i % 100, 'p' || i) FROM generate_series(1, 30000) i;
    INSERT INTO feed_trim(owner, horizon, spare) SELECT fanout_key('x' || i), -1, 0 FROM generate_series(1, 30000) i;
    """

  /// A little of everything, a trim and a refill among it.
  private static func apply(_ round: Int, to store: PostgresStore) throws {
    let time = Int64(round * 10 + 1)
    let lots: [[Event]] = [
      [
        .follow("a", "b", at: time), .follow("c", "b", at: time), .like("a", "b", "p", at: time),
        .seen("b", upTo: time),
      ],
      (0..<25).map { .published("b", "p\(round)-\($0)", at: time + 1, publishedAt: 40_000 + time * 100 + Int64($0)) },
      [.unfollow("c", "b", at: time + 2), .deleted("b", "p\(round)-24", at: time + 2)],
      [.published("b", "p\(round)-23", at: time + 3, publishedAt: 40_000)],
      [.unlike("a", "b", "p", at: time + 4), .unfollow("a", "b", at: time + 4), .seen("b", upTo: time + 4)],
    ]
    for (index, events) in lots.enumerated() {
      let batch = Scenario.batch(events)
      // One of them by slices.
      let sliceSize = index == 2 ? 1 : 5000
      _ = try store.commitFacts(batch)
      for slice in try store.deriveViews(of: batch, sliceSize: sliceSize).slices {
        _ = try store.derive(slice, sliceSize: sliceSize)
      }
    }
  }
}
