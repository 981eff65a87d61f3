import FanoutStore
import FanoutStoreTesting
import SQLiteStore
import SocialEvents
import Testing

/// Faults that users of other systems reported (KNOWN_FAULTS.md), and that none of our stores has.
@Suite("Known faults")
struct KnownFaultsTests {
  enum StoreKind: String, CaseIterable, Sendable {
    case memory, sqlite

    func withScenario(feedLimit: Int = 1000, ownPosts: Bool = false, _ body: (Scenario) throws -> Void) throws {
      let folder = try ScratchFolder()
      let scenario = try Scenario(
        { settings in
          switch self {
          case .memory: MemoryStore(settings: settings)
          case .sqlite: try SQLiteStore(path: folder.file("store.db"), access: .readWrite, settings: settings)
          }
        }, feedLimit: feedLimit, ownPosts: ownPosts)
      try body(scenario)
      try scenario.expectOracle()
      try ReadAudit.check(scenario.store, users: [], pageSize: 2)
    }
  }

  @Test("mastodon#165, lemmy#6516: the same like twice is one entry", arguments: StoreKind.allCases)
  func twice(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      for _ in 0..<3 { try scenario.apply(.like("a", "b", "p", at: 1)) }
      // The producer sent it again as an event of its own.
      try scenario.apply(.like("a", "b", "p", at: 2, id: "again"), .like("a", "b", "p", at: 1))
      try scenario.expectFeedback(of: "b", ["like a p"])
      try scenario.expectUnread(of: "b", 1)
    }
  }

  @Test(
    "mastodon#4118, gotosocial#51, openbazaar-go#668: like and unlike in a loop leave one entry at most",
    arguments: StoreKind.allCases)
  func loop(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      for round in Int64(0)..<10 {
        try scenario.apply(.like("a", "b", "p", at: 2 * round), .follow("a", "b", at: 2 * round))
        try scenario.expectFeedback(of: "b", ["like a p", "follow a"])
        try scenario.apply(.unlike("a", "b", "p", at: 2 * round + 1), .unfollow("a", "b", at: 2 * round + 1))
        try scenario.expectFeedback(of: "b", [])
      }
    }
  }

  @Test(
    "mastodon#2865, #7240, #9234, #33902: no entry about an undone like or a post that is gone, whichever came first",
    arguments: StoreKind.allCases)
  func dangling(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply(.unlike("a", "b", "p", at: 2), .deleted("b", "q"))
      try scenario.apply(.like("a", "b", "p", at: 1), .like("a", "b", "q", at: 9), .published("b", "q", at: 9))
      try scenario.expectFeedback(of: "b", [])
      try scenario.expectUnread(of: "b", 0)
    }
  }

  @Test(
    "pixelfed#5290, #3362; social-app#842; mastodon#2205: notifications don't outlive the post",
    arguments: StoreKind.allCases)
  func outliving(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply((0..<5).flatMap { [.like("u\($0)", "b", "p", at: 1), .favorite("u\($0)", "b", "p", at: 1)] })
      try scenario.apply(.deleted("b", "p"))
      try scenario.expectFeedback(of: "b", [])
    }
  }

  @Test("forem#75, misskey#11906: undoing a reaction removes its entry", arguments: StoreKind.allCases)
  func undone(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply(.like("a", "b", "p", at: 1), .favorite("a", "b", "p", at: 1))
      try scenario.apply(.unlike("a", "b", "p", at: 2))
      try scenario.expectFeedback(of: "b", ["favorite a p"])
    }
  }

  @Test("thunder#683, social-app#2246: the unread count counts what the list shows", arguments: StoreKind.allCases)
  func unread(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply(
        .like("a", "b", "p", at: 5), .like("a", "b", "gone", at: 5), .like("b", "b", "p", at: 5),
        .follow("a", "b", at: 5),
        .follow("c", "b", at: 5, silent: true), .favorite("a", "b", "p", at: 3))
      try scenario.commit([.deleted("b", "gone"), .unfollow("a", "b", at: 6), .seen("b", upTo: 4)])
      try scenario.expectFeedback(of: "b", ["like a p", "favorite a p"])
      try scenario.expectUnread(of: "b", 1)
    }
  }

  @Test(
    "takahe#366, mastodon#22, pixelfed-rn#478: posts of the unfollowed leave the feed and don't come back",
    arguments: StoreKind.allCases)
  func unfollowed(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply(.follow("a", "b", at: 1), .follow("c", "b", at: 1), .published("b", "p", at: 1))
      let late: [Event] = [.published("b", "late", at: 2)]
      try scenario.commit(late)
      let slices = try scenario.derive(late, sliceSize: 1).slices
      try scenario.apply(.unfollow("a", "b", at: 2))
      for slice in slices { _ = try scenario.store.derive(slice, sliceSize: 1) }
      try scenario.derive(late)
      try scenario.expectFeed(of: "a", [])
      try scenario.expectFeed(of: "c", ["b/late", "b/p"])
    }
  }

  @Test("mastodon PR 38048: feeds are cleaned up though the edge was gone first", arguments: StoreKind.allCases)
  func edgeGoneFirst(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply(.follow("a", "b", at: 1), .published("b", "p", at: 1))
      // The unfollow's views come after the deletion's, and then the user follows again.
      try scenario.commit([.unfollow("a", "b", at: 2)])
      try scenario.apply(.deleted("b", "p"))
      try scenario.apply(.unfollow("a", "b", at: 2))
      try scenario.apply(.follow("a", "b", at: 3))
      try scenario.expectFeed(of: "a", [])
    }
  }

  @Test("mastodon PR 10280, #16238: a late job doesn't put a deleted post back", arguments: StoreKind.allCases)
  func lateJob(kind: StoreKind) throws {
    try kind.withScenario(ownPosts: true) { scenario in
      try scenario.apply((0..<6).map { .follow("u\($0)", "b", at: 1) })
      let publish: [Event] = [.published("b", "p", at: 1)]
      try scenario.commit(publish)
      let slices = try scenario.derive(publish, sliceSize: 2).slices
      try scenario.apply([.deleted("b", "p")], sliceSize: 2)
      for slice in slices { _ = try scenario.store.derive(slice, sliceSize: 2) }
      try scenario.apply(publish, sliceSize: 2)
      for index in 0..<6 { try scenario.expectFeed(of: "u\(index)", []) }
    }
  }

  @Test(
    "Stream-Framework#96, #172: a deleted post is hidden while its fan-out lags, and gone when that is done",
    arguments: StoreKind.allCases)
  func lagging(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply((0..<6).map { .follow("u\($0)", "b", at: 1) })
      try scenario.apply([.published("b", "p", at: 1)], sliceSize: 2)
      let delete: [Event] = [.deleted("b", "p")]
      try scenario.commit(delete)
      for index in 0..<6 { try scenario.expectFeed(of: "u\(index)", []) }
      for slice in try scenario.derive(delete, sliceSize: 2).slices {
        _ = try scenario.store.derive(slice, sliceSize: 2)
        for index in 0..<6 { try scenario.expectFeed(of: "u\(index)", []) }
      }
    }
  }

  @Test("atproto#2199: of two posts with one timestamp none vanishes at a page boundary", arguments: StoreKind.allCases)
  func pageBoundary(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply(.follow("a", "b", at: 1), .follow("a", "c", at: 1))
      try scenario.apply(
        .published("b", "p", at: 5), .published("c", "p", at: 5), .published("b", "q", at: 5),
        .published("c", "q", at: 5))
      let user = UserID(unchecked: "a")
      var posts: [Post] = []
      var last: FeedItem?
      repeat {
        last = try scenario.store.feed(of: user, after: last, limit: 1).first
        if let last { posts.append(last.post) }
      } while last != nil
      #expect(posts == [.sample("c", "q"), .sample("c", "p"), .sample("b", "q"), .sample("b", "p")])
    }
  }

  @Test(
    "mastodon#545, #33747; pixelfed#4949: a post that comes late stands at its own time", arguments: StoreKind.allCases)
  func lateArrival(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply(.follow("a", "b", at: 1))
      try scenario.apply(.published("b", "new", at: 50))
      try scenario.apply(.published("b", "late", at: 99, publishedAt: 10))
      try scenario.expectFeed(of: "a", ["b/new", "b/late"])
    }
  }

  @Test("gotosocial#233: a post dated in the future doesn't stick on top", arguments: StoreKind.allCases)
  func future(kind: StoreKind) throws {
    let year2099: Int64 = 2_300_000_000_000_000
    try kind.withScenario { scenario in
      try scenario.apply([.follow("a", "b", at: 0)], recorded: .sample(0))
      try scenario.apply([.published("b", "future", at: 1, publishedAt: year2099)], recorded: .sample(1))
      try scenario.apply([.published("b", "clock", at: year2099)], recorded: .sample(2))
      try scenario.apply([.published("b", "now", at: 3)], recorded: .sample(3))
      try scenario.expectFeed(of: "a", ["b/now", "b/clock", "b/future"])
    }
  }

  @Test("misskey#11404, #17547: trimming makes no older post unreachable", arguments: StoreKind.allCases)
  func unreachable(kind: StoreKind) throws {
    try kind.withScenario(feedLimit: 3) { scenario in
      try scenario.apply(.follow("a", "b", at: 1))
      for index in 0..<20 { try scenario.apply(.published("b", "p\(index)", at: Int64(index))) }
      for index in (5..<20).reversed() { try scenario.apply(.deleted("b", "p\(index)")) }
      try scenario.expectFeed(of: "a", ["b/p4", "b/p3", "b/p2"])
    }
  }

  @Test("pixelfed: adding what is there already erodes no full feed", arguments: StoreKind.allCases)
  func erosion(kind: StoreKind) throws {
    try kind.withScenario(feedLimit: 3) { scenario in
      try scenario.apply(.follow("a", "b", at: 1))
      for index in 0..<3 { try scenario.apply(.published("b", "p\(index)", at: Int64(index))) }
      for _ in 0..<10 { try scenario.apply(.published("b", "p2", at: 2)) }
      try scenario.expectFeed(of: "a", ["b/p2", "b/p1", "b/p0"])
    }
  }

  @Test(
    "mastodon#17856; TryGhost/ActivityPub PR 233: a fan-out reaches every follower, in few slices",
    arguments: StoreKind.allCases)
  func everyFollower(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply((0..<200).map { .follow("u\($0)", "b", at: 1) })
      let publish: [Event] = [.published("b", "p", at: 1)]
      try scenario.commit(publish)
      let slices = try scenario.derive(publish, sliceSize: 20).slices
      #expect(slices.count <= 32)
      for (index, slice) in slices.enumerated() {
        // Somebody comes and somebody goes all the while.
        try scenario.apply(.follow("late\(index)", "b", at: 2), .unfollow("u\(index)", "b", at: 2))
        _ = try scenario.store.derive(slice, sliceSize: 20)
      }
    }
  }

  @Test("mastodon PR 18527, #18365; forem#4263: counts don't drift with duplicates", arguments: StoreKind.allCases)
  func counts(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      for _ in 0..<3 { try scenario.apply(.unlike("a", "b", "p", at: 1), .unfollow("a", "b", at: 1)) }
      #expect(try scenario.store.count(.likers, of: .post(.sample("b", "p"))) == 0)
      for _ in 0..<3 { try scenario.apply(.like("a", "b", "p", at: 2), .like("c", "b", "p", at: 2)) }
      #expect(try scenario.store.count(.likers, of: .post(.sample("b", "p"))) == 2)
      for _ in 0..<3 { try scenario.apply(.unlike("a", "b", "p", at: 3)) }
      #expect(try scenario.store.count(.likers, of: .post(.sample("b", "p"))) == 1)
    }
  }

  @Test(
    "notifications-backend PR 600, PostHog PR 80897: everything sent again changes nothing",
    arguments: StoreKind.allCases)
  func everythingAgain(kind: StoreKind) throws {
    try kind.withScenario(feedLimit: 2, ownPosts: true) { scenario in
      let events: [Event] =
        [.follow("a", "b", at: 1), .like("a", "b", "p1", at: 1), .deleted("b", "p3")]
        + (0..<8).map { .published("b", "p\($0)", at: Int64($0)) }
      for event in events { try scenario.apply(event) }
      try scenario.expectNoEffect(of: "everything again") {
        var changes = try scenario.apply(events)
        for event in events.reversed() { changes += try scenario.apply(event) }
        #expect(changes == 0)
      }
    }
  }

  @Test("social-app#1201: own likes notify nobody", arguments: StoreKind.allCases)
  func ownLikes(kind: StoreKind) throws {
    try kind.withScenario { scenario in
      try scenario.apply(.like("b", "b", "p", at: 1), .favorite("b", "b", "p", at: 1))
      try scenario.expectFeedback(of: "b", [])
      try scenario.expectUnread(of: "b", 0)
    }
  }
}
