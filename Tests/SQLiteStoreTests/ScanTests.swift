import FanoutStore
import FanoutStoreTesting
import SQLiteStore
import SocialEvents
import Testing

@Suite("What SQLite reads")
struct ScanTests {
  /// Much less than the tables hold, and more than a batch brings.
  private static let few = 100

  @Test("no write and no read of a page scans a table")
  func noScans() throws {
    let folder = try ScratchFolder()
    ScanRecorder.start(folder.path)
    let store = try SQLiteStore(
      path: folder.file("store.db"), access: .readWrite, settings: StoreSettings(feedLimit: 5, includesOwnPosts: true))
    let scenario = try Scenario({ _ in store }, feedLimit: 5, ownPosts: true)
    // Two thousand users follow one, many follow each other and like posts; feeds are trimmed.
    try scenario.apply((0..<2000).map { .follow("u\($0)", "star", at: 1) })
    try scenario.apply((0..<2000).map { .follow("u\($0)", "u\($0 % 50)x", at: 1) })
    try scenario.apply((0..<2000).map { .like("u\($0)", "star", "p\($0 % 20)", at: 1) })
    try scenario.apply((0..<2000).map { .published("u\($0)x", "p", at: Int64($0)) })
    try scenario.apply((0..<12).map { .published("star", "p\($0)", at: Int64($0)) }, sliceSize: 5000)
    #expect(try Database(folder.file("store.db")).integer("SELECT count(*) FROM feed") > 10_000)
    _ = ScanRecorder.take(folder.path)

    var known: Set<String> = []
    func expectFew(_ what: String) {
      for (sql, steps) in ScanRecorder.take(folder.path) where steps > Self.few && known.insert(sql).inserted {
        Issue.record("\(what) scans \(steps) rows in: \(sql)")
      }
    }
    let batches: [(String, [Event])] = [
      ("a follow", [.follow("new", "star", at: 1)]), ("an unfollow", [.unfollow("u7", "star", at: 2)]),
      ("a like", [.like("u1", "star", "p3", at: 2)]), ("seen", [.seen("star", upTo: 1)]),
      ("a post", [.published("star", "new", at: 50)]), ("a republication", [.published("star", "p11", at: 60)]),
      ("a deletion", [.deleted("star", "p10")]),
    ]
    for (what, events) in batches {
      try scenario.commit(events)
      expectFew("recording \(what)")
      // Slices of twenty, each in transactions of its own: whatever they read, it is not the whole table.
      let slices = try scenario.derive(events, sliceSize: 20).slices
      expectFew("deriving \(what)")
      for slice in slices {
        _ = try store.derive(slice, sliceSize: 20)
        expectFew("a slice of \(what)")
      }
    }
    let star = UserID(unchecked: "star")
    for relation in Relation.allCases {
      let subject: Subject = relation.isOfPost ? .post(.sample("star", "p3")) : .user(star)
      let first = try store.relation(relation, of: subject, after: nil, limit: 20)
      _ = try store.relation(relation, of: subject, after: first.last, limit: 20)
      _ = try store.count(relation, of: subject)
      expectFew("\(relation)")
    }
    let feed = try store.feed(of: star, after: nil, limit: 2)
    _ = try store.feed(of: star, after: feed.last, limit: 2)
    expectFew("a feed")
    let feedback = try store.feedback(of: star, after: nil, limit: 20)
    _ = try store.feedback(of: star, after: feedback.last?.position, limit: 20)
    _ = try store.unreadCount(of: star)
    expectFew("feedback")

    // The recorder does see scans.
    try store.export { _ in }
    #expect(ScanRecorder.take(folder.path).values.contains { $0 > 1000 })
  }
}
