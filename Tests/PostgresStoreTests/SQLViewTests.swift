import FanoutStore
import FanoutStoreTesting
import Foundation
import PostgresStore
import PostgresTesting
import SocialEvents
import Testing

/// What other services read with SQL.
@Suite("The SQL views of a PostgreSQL store", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct SQLViewTests {
  @Test("keys that SQL computes are the store's")
  func keys() throws {
    let place = try Place()
    let post = Post.sample("é", "p'")
    let words = [
      (StoreKey(UserID(unchecked: "日本/語")).hexadecimal, "fanout_key('日本/語')"),
      (StoreKey(post).hexadecimal, "fanout_key('é', 'p''')"),
    ]
    for (key, sql) in words {
      #expect(try place.integer("SELECT count(*) WHERE \(sql) = '\(key)'::uuid") == 1)
    }
  }

  @Test("show what readers of the store are shown, also before any clean-up")
  func views() throws {
    let place = try Place(settings: StoreSettings(feedLimit: 2, includesOwnPosts: true))
    let store = place.store
    let scenario = try Scenario({ _ in store }, feedLimit: 2, ownPosts: true)
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
      "feed WHERE owner = fanout_key('a') AND author_id = 'b' AND post_id = 'p8'": 1,
      "feed WHERE owner = fanout_key('c')": 3,
    ])
    // Facts only: what is to be taken away is still there, and must not be shown.
    try scenario.commit([.deleted("b", "p8"), .unfollow("c", "b", at: 9), .unfollow("d", "b", at: 9)])
    try expectCounts([
      "feedback WHERE owner = fanout_key('b')": 2, "follows WHERE subject = fanout_key('b')": 1,
      "likes": 0, "feed WHERE post_id = 'p8'": 0, "feed WHERE owner = fanout_key('c')": 0,
    ])
  }

  @Test(
    "the queries of a reader service use an index",
    arguments: [
      ("SELECT * FROM feedback WHERE owner = fanout_key('u1') ORDER BY time DESC LIMIT 20", "edge_feedback"),
      ("SELECT * FROM feed WHERE owner = fanout_key('u1') ORDER BY at DESC LIMIT 20", "feed_row_pkey"),
      ("SELECT * FROM follows WHERE actor = fanout_key('u1') ORDER BY subject LIMIT 20", "edge_pkey"),
      ("SELECT * FROM follows WHERE subject = fanout_key('u1') ORDER BY actor LIMIT 20", "edge_by_subject"),
      ("SELECT count(*) FROM likes WHERE subject = fanout_key('u1', 'p')", "edge_by_subject"),
    ])
  func plans(query: String, index: String) throws {
    let place = try Place()
    try place.execute(
      """
      INSERT INTO edge SELECT k, 0, n, fanout_key('u' || n), fanout_key('u' || n / 20), fanout_key('u' || n / 20), 'e',
        'u' || n, 'u' || n / 20, NULL, NULL FROM generate_series(1, 20000) n, generate_series(0, 1) k;
      INSERT INTO post SELECT n, n, fanout_key('u' || n, 'p'), fanout_key('u' || n), false, '{}', 'e', 'u' || n, 'p'
        FROM generate_series(1, 20000) n;
      INSERT INTO feed_row SELECT fanout_key('u' || n / 20), n, fanout_key('u' || n, 'p') FROM generate_series(1, 20000) n;
      ANALYZE edge; ANALYZE post; ANALYZE feed
      """)
    let plan = try place.explain(query)
    #expect(plan.contains(index), "\(plan)")
    #expect(!plan.contains("Seq Scan on edge") && !plan.contains("Seq Scan on feed_row"), "\(plan)")
    try place.execute(
      "DELETE FROM edge; DELETE FROM post; DELETE FROM feed_row; ANALYZE edge; ANALYZE post; ANALYZE feed_row")
  }

  @Test("a role that may only read reads, and one that may write does all that a worker does")
  func roles() throws {
    let place = try Place()
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Deploy/postgres-roles.sql").standardizedFileURL
    try place.execute(String(decoding: try Data(contentsOf: script), as: UTF8.self))
    let suffix = UInt32.random(in: 0...UInt32.max)
    for role in ["worker", "reader"] {
      try place.execute("CREATE ROLE \(role)\(suffix) LOGIN PASSWORD 'secret' IN ROLE fanout_\(role)")
    }
    func address(_ role: String) throws -> String {
      let parts = place.address.split(separator: "@", maxSplits: 1)
      return "postgres://\(role)\(suffix):secret@" + (try #require(parts.last))
    }
    let worker = try PostgresStore(address: try address("worker"), access: .readWrite, settings: nil)
    let scenario = try Scenario({ _ in worker })
    try scenario.apply(.follow("a", "b", at: 1), .published("b", "p", at: 1), .published("b", "q", at: 1))
    try scenario.apply(.deleted("b", "p"), .unfollow("a", "b", at: 2), .seen("b", upTo: 3))
    let reader = try PostgresStore(address: try address("reader"), access: .readOnly, settings: nil)
    #expect(try DumpLines.of(reader) == DumpLines.of(worker))
    #expect(throws: StoreError.self) { try Connection(try address("reader")).execute("DELETE FROM feed_row") }
  }
}
