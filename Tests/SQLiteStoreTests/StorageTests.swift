import FanoutStore
import FanoutStoreTesting
import SQLiteStore
import Testing

/// What the tables hold, besides what readers see.
@Suite("What a SQLite store keeps")
struct StorageTests {
  private let folder: ScratchFolder

  init() throws {
    folder = try ScratchFolder()
  }

  private func scenario(feedLimit: Int, ownPosts: Bool = false) throws -> (Scenario, Database) {
    let path = folder.file("store.db")
    let scenario = try Scenario(
      { try SQLiteStore(path: path, access: .readWrite, settings: $0) }, feedLimit: feedLimit, ownPosts: ownPosts)
    return (scenario, try Database(path))
  }

  @Test("a feed is never longer than twice the limit, and some", arguments: [1, 2, 3, 8, 50])
  func bounded(limit: Int) throws {
    let (scenario, database) = try scenario(feedLimit: limit)
    try scenario.apply(.follow("a", "b", at: 1))
    for index in 0..<20 * limit {
      try scenario.apply(.published("b", "p\(index)", at: Int64(index)))
      // A look at a feed is drawn with a probability of eight in the limit: up to eight are looked at each time.
      if limit <= 8 { #expect(try database.integer("SELECT count(*) FROM feed") <= 2 * limit) }
    }
    #expect(try database.integer("SELECT count(*) FROM feed") <= 6 * limit)
    try scenario.expectOracle()
  }

  @Test("old posts that a trimmed feed would not show are not stored in it")
  func belowTheHorizon() throws {
    let (scenario, database) = try scenario(feedLimit: 2)
    try scenario.apply(.follow("a", "b", at: 1))
    for index in Int64(0)..<50 { try scenario.apply(.published("b", "p\(index)", at: -index)) }
    #expect(try database.integer("SELECT count(*) FROM feed") <= 4)
  }

  @Test("the times that a post once had are forgotten when no feed holds it under them")
  func formerTimes() throws {
    let (scenario, database) = try scenario(feedLimit: 10, ownPosts: true)
    try scenario.apply((0..<5).map { .follow("f\($0)", "b", at: 1) })
    for index in Int64(0)..<40 {
      try scenario.apply(.published("b", "p", at: 10 + index, publishedAt: index % 7 * 100))
      #expect(try database.integer("SELECT count(*) FROM post_former") == 0)
      #expect(try database.integer("SELECT count(*) FROM feed") == 6)
    }
    // Slices can't know whether they are the last, so for them it is remembered.
    try scenario.apply(.published("b", "p", at: 99, publishedAt: 9000), sliceSize: 2)
    try scenario.apply(.published("b", "p", at: 100, publishedAt: 9001))
    #expect(try database.integer("SELECT count(*) FROM post_former") == 0)
    try scenario.expectOracle()
  }

  @Test("large fan-outs come in slices")
  func slices() throws {
    let (scenario, _) = try scenario(feedLimit: 10)
    try scenario.apply((0..<11).map { .follow("u\($0)", "b", at: 1) })
    let publish = [Scenario.batch([.published("b", "p", at: 1)])][0]
    _ = try scenario.store.commitFacts(publish)
    #expect(try scenario.store.deriveViews(of: publish, sliceSize: 11).slices.isEmpty)
    for sliceSize in [1, 2, 5, 10] {
      let slices = try scenario.store.deriveViews(of: publish, sliceSize: sliceSize).slices
      #expect(slices.count * sliceSize >= 11)
    }
  }

  @Test("histories leave no feed row behind that nobody is shown", arguments: UInt64(1)...150)
  func nothingLeft(seed: UInt64) throws {
    let path = folder.file("store.db")
    try HistoryRunner.check(seed: seed) { try SQLiteStore(path: path, access: .readWrite, settings: $0) }
    let stale = try Database(path).integer(
      """
      SELECT count(*) FROM feed f LEFT JOIN post p ON p.key = f.post
      WHERE p.key IS NULL OR p.deleted OR p.at IS NOT f.at OR (p.author <> f.owner
        AND NOT EXISTS (SELECT 1 FROM edge e WHERE e.kind = 0 AND e.actor = f.owner AND e.subject = p.author AND e.state < 2))
      """)
    #expect(stale == 0, "FANOUT_SEED=\(seed)")
  }
}
