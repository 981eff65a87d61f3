internal import FanoutStore
internal import SocialEvents

extension StoreConformance {
  static let feedChecks: [Check] = [
    Check("5, feed", "posts of the followed appear, whichever of follow and post comes first") { makeStore in
      for followFirst in [true, false] {
        let scenario = try Scenario(makeStore)
        let follow = Event.follow("a", "b", at: 5)
        let posts: [Event] = [.published("b", "p", at: 1), .published("b", "q", at: 2), .published("c", "r", at: 3)]
        if followFirst { try scenario.apply(follow) }
        try scenario.apply(posts)
        if !followFirst { try scenario.apply(follow) }
        try scenario.expectFeed(of: "a", ["b/q", "b/p"])
        try scenario.expectFeed(of: "c", [])
        try scenario.expectOracle()
      }
    },
    Check("5, feed", "newest first by publishedAt, not by the order of arrival or of versions") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.follow("a", "b", at: 0))
      try scenario.apply(.published("b", "two", at: 50, publishedAt: 2))
      try scenario.apply(.published("b", "three", at: 3))
      try scenario.apply(.published("b", "one", at: 99, publishedAt: 1))
      try scenario.expectFeed(of: "a", ["b/three", "b/two", "b/one"])
    },
    Check("5, feed", "equal times are ordered by author, then post, descending, by bytes") { makeStore in
      let scenario = try Scenario(makeStore)
      // "a" then separator must not compare with "a!": the author is compared first, and alone.
      for author in ["b", "b!", "B", "é", "e\u{301}"] { try scenario.apply(.follow("a", author, at: 0)) }
      try scenario.apply(
        .published("b", "z", at: 1), .published("b!", "a", at: 1), .published("B", "10", at: 1),
        .published("B", "9", at: 1),
        .published("é", "p", at: 1), .published("e\u{301}", "p", at: 1), .published("b", "zz", at: 1),
        .published("b", "é", at: 1), .published("b", "e\u{301}", at: 1))
      try scenario.expectFeed(
        of: "a", ["é/p", "e\u{301}/p", "b!/a", "b/é", "b/zz", "b/z", "b/e\u{301}", "B/9", "B/10"])
      try scenario.expectOracle()
    },
    Check("5, feed", "no page boundary among equal times loses or repeats an item") { makeStore in
      for limit in [5, 9, 10, 11, 1000] {
        let scenario = try Scenario(makeStore, feedLimit: limit)
        try scenario.apply(.follow("a", "b", at: 0), .follow("a", "b!", at: 0))
        try scenario.apply((0..<5).flatMap { [.published("b", "p\($0)", at: 1), .published("b!", "p\($0)", at: 1)] })
        let user = UserID(unchecked: "a")
        let whole = try scenario.store.feed(of: user, after: nil, limit: .max)
        try expectEqual(whole.count, min(limit, 10), "items of a feed of limit \(limit)")
        for size in 1...11 {
          let paged = try ReadAudit.pages("feed", size) { try scenario.store.feed(of: user, after: $0, limit: $1) }
          try expectEqual(paged, whole, "feed in pages of \(size)")
        }
      }
    },
    Check("5, feed", "a page after an item that has gone goes on where it was") { makeStore in
      let scenario = try Scenario(makeStore)
      let user = UserID(unchecked: "a")
      try scenario.apply(.follow("a", "b", at: 0))
      try scenario.apply((0..<6).map { .published("b", "p\($0)", at: Int64($0 / 2)) })
      let whole = try scenario.store.feed(of: user, after: nil, limit: .max)
      try expectEqual(whole.count, 6, "items")
      try scenario.apply(.deleted("b", whole[2].post.id.string))
      let rest = try scenario.store.feed(of: user, after: whole[2], limit: .max)
      try expectEqual(rest, Array(whole[3...]), "feed after a deleted item")
    },
    Check("5, feed", "unfollow removes all of an author's posts and no other's; follow brings them back") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.follow("a", "b", at: 0), .follow("a", "c", at: 0), .follow("d", "b", at: 0))
      try scenario.apply(.published("b", "p", at: 1), .published("c", "p", at: 2), .published("b", "q", at: 3))
      try scenario.apply(.unfollow("a", "b", at: 1))
      try scenario.expectFeed(of: "a", ["c/p"])
      try scenario.expectFeed(of: "d", ["b/q", "b/p"])
      try scenario.apply(.published("b", "r", at: 4))
      try scenario.expectFeed(of: "a", ["c/p"])
      try scenario.apply(.follow("a", "b", at: 2))
      try scenario.expectFeed(of: "a", ["b/r", "b/q", "c/p", "b/p"])
      try scenario.expectOracle()
    },
    Check("5, feed", "a silent follow feeds as any other, and an unfollow takes it back") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.published("b", "p", at: 1), .follow("a", "b", at: 2, silent: true))
      try scenario.expectFeed(of: "a", ["b/p"])
      try scenario.apply(.unfollow("a", "b", at: 3))
      try scenario.expectFeed(of: "a", [])
    },
    Check("5, feed", "likes and favorites feed nothing") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.published("b", "p", at: 1), .like("a", "b", "p", at: 1), .favorite("a", "b", "p", at: 1))
      try scenario.expectFeed(of: "a", [])
    },
    Check("5, feed", "own posts are in the feed when that is on, and only then") { makeStore in
      for ownPosts in [true, false] {
        let scenario = try Scenario(makeStore, ownPosts: ownPosts)
        try scenario.apply(.published("a", "mine", at: 2), .published("b", "p", at: 1), .follow("a", "b", at: 0))
        try scenario.expectFeed(of: "a", ownPosts ? ["a/mine", "b/p"] : ["b/p"])
        try scenario.expectFeed(of: "b", ownPosts ? ["b/p"] : [])
        try scenario.apply(.published("a", "mine", at: 3, publishedAt: 0))
        try scenario.expectFeed(of: "a", ownPosts ? ["b/p", "a/mine"] : ["b/p"])
        try scenario.apply(.deleted("a", "mine"))
        try scenario.expectFeed(of: "a", ["b/p"])
        try scenario.apply(.unfollow("a", "b", at: 1))
        try scenario.expectFeed(of: "a", [])
        try scenario.expectOracle()
      }
    },
    Check("5, feed", "a republished post moves, and is there once") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.follow("a", "b", at: 0))
      try scenario.apply(.published("b", "p", at: 1, publishedAt: 10), .published("b", "fixed", at: 1, publishedAt: 20))
      for (version, publishedAt) in [(Int64(2), Int64(30)), (3, 10), (4, 30), (5, 1), (6, 20)] {
        try scenario.apply(.published("b", "p", at: version, publishedAt: publishedAt))
        try scenario.expectFeed(of: "a", publishedAt >= 20 ? ["b/p", "b/fixed"] : ["b/fixed", "b/p"])
        try scenario.expectOracle("at publishedAt \(publishedAt)")
      }
    },
    Check("5, feed", "a deleted post leaves every feed, of former followers too, and never comes back") { makeStore in
      let scenario = try Scenario(makeStore, ownPosts: true)
      try scenario.apply(.follow("a", "b", at: 0), .follow("c", "b", at: 0), .published("b", "p", at: 1))
      try scenario.apply(.unfollow("c", "b", at: 1))
      try scenario.apply(.deleted("b", "p"))
      for user in ["a", "b", "c"] { try scenario.expectFeed(of: user, []) }
      try scenario.apply(.published("b", "p", at: 9), .follow("c", "b", at: 9))
      for user in ["a", "b", "c"] { try scenario.expectFeed(of: user, []) }
      try scenario.expectOracle()
    },
    Check("5, feed", "times from 1970 on are in order") { makeStore in
      let scenario = try Scenario(makeStore, feedLimit: 2)
      let epoch: Int64 = -1_785_000_000_000_000
      try scenario.apply(.follow("a", "b", at: 0))
      for (index, at) in [epoch, epoch + 1, epoch / 2, 0].enumerated() {
        try scenario.apply(.published("b", "p\(index)", at: at))
      }
      try scenario.expectFeed(of: "a", ["b/p3", "b/p2"])
      try scenario.apply(.deleted("b", "p3"), .deleted("b", "p2"))
      try scenario.expectFeed(of: "a", ["b/p1", "b/p0"])
    },
  ]
}
