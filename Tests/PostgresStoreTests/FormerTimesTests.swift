import FanoutStore
import FanoutStoreTesting
import PostgresStore
import PostgresTesting
import SocialEvents
import Testing

@Suite("Posts that are published again on PostgreSQL", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct FormerTimesTests {
  /// An author who edits a post again and again must not make each edit dearer than the one before.
  @Test("are looked for under a few of their former times only", arguments: [5000, 2])
  func bounded(sliceSize: Int) throws {
    let place = try Place(settings: StoreSettings(feedLimit: 10, includesOwnPosts: true))
    let scenario = try Scenario({ _ in place.store }, feedLimit: 10, ownPosts: true)
    try scenario.apply((0..<5).map { .follow("f\($0)", "b", at: 1) })
    for index in Int64(0)..<40 {
      try scenario.apply(.published("b", "p", at: 10 + index, publishedAt: index % 13 * 100), sliceSize: sliceSize)
      #expect(try place.integer("SELECT max(cardinality(former)) FROM post") <= 8)
      #expect(try place.integer("SELECT count(*) FROM feed_row") == 6)
    }
    #expect(try place.integer("SELECT max(cardinality(former)) FROM post") == 8)
    try scenario.expectOracle()
  }
}
