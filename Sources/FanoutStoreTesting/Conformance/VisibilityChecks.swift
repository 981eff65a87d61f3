internal import FanoutStore
internal import SocialEvents

extension StoreConformance {
  static let visibilityChecks: [Check] = [
    Check("5, hidden at once", "a deletion hides the post from every view as soon as its fact is committed") {
      makeStore in
      let scenario = try Scenario(makeStore, ownPosts: true)
      try scenario.apply(
        .follow("a", "b", at: 1), .published("b", "p", at: 1), .like("a", "b", "p", at: 1),
        .favorite("c", "b", "p", at: 1))
      try scenario.commit([.deleted("b", "p")])
      try scenario.expectFeed(of: "a", [])
      try scenario.expectFeed(of: "b", [])
      try scenario.expectFeedback(of: "b", ["follow a"])
      try scenario.expectUnread(of: "b", 1)
      try scenario.expect(.likers, of: .post("b", "p"), [])
      try scenario.expect(.liked, of: .user("a"), [])
      try scenario.expect(.favoriters, of: .post("b", "p"), [])
      try scenario.expectOracle("before the views are derived")
    },
    Check("5, hidden at once", "an undo hides the edge from every view as soon as its fact is committed") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(
        .follow("a", "b", at: 1), .published("b", "p", at: 1), .like("a", "b", "p", at: 1),
        .favorite("a", "b", "p", at: 1))
      try scenario.commit([
        .unfollow("a", "b", at: 2), .unlike("a", "b", "p", at: 2), .unfavorite("a", "b", "p", at: 2),
      ])
      try scenario.expectFeed(of: "a", [])
      try scenario.expectFeedback(of: "b", [])
      try scenario.expectUnread(of: "b", 0)
      try scenario.expect(.followers, of: .user("b"), [])
      try scenario.expect(.liked, of: .user("a"), [])
      try scenario.expect(.favoriters, of: .post("b", "p"), [])
      try scenario.expectOracle("before the views are derived")
    },
    Check("5, hidden at once", "pages of a feed leave hidden items out, and none besides") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.follow("a", "b", at: 1), .follow("a", "c", at: 1))
      try scenario.apply(
        (0..<5).flatMap { [.published("b", "p\($0)", at: 1), .published("c", "p\($0)", at: Int64($0))] })
      try scenario.commit([.deleted("c", "p4"), .unfollow("a", "b", at: 2)])
      let user = UserID(unchecked: "a")
      for size in 1...4 {
        let paged = try ReadAudit.pages("feed", size) { try scenario.store.feed(of: user, after: $0, limit: $1) }
        try expectEqual(paged.map(\.post.id.string), ["p3", "p2", "p1", "p0"], "feed in pages of \(size)")
      }
    },
    Check("6", "a batch broken off after its facts, between others, is made good by its repetition") { makeStore in
      let scenario = try Scenario(makeStore, feedLimit: 2, ownPosts: true)
      let first: [Event] = [.follow("a", "b", at: 1), .published("b", "p", at: 1), .published("b", "q", at: 1)]
      let second: [Event] = [.published("b", "r", at: 5), .unfollow("a", "b", at: 2), .deleted("b", "q")]
      let third: [Event] = [.follow("a", "b", at: 3), .published("b", "p", at: 7, publishedAt: 9)]
      try scenario.commit(first)
      try scenario.commit(third)
      try scenario.apply(second)
      try scenario.apply(third)
      try scenario.apply(first)
      try scenario.expectFeed(of: "a", ["b/p", "b/r"])
      try scenario.expectOracle()
    },
    Check("9", "the export holds each row once, and what reads show") { makeStore in
      let scenario = try Scenario(makeStore, feedLimit: 3, ownPosts: true)
      try scenario.apply(
        .follow("a", "b", at: 1), .follow("b", "a", at: 1, silent: true), .like("a", "b", "p", at: 1, extra: "{}"),
        .like("b", "b", "p", at: 1), .favorite("c", "b", "deleted", at: 1), .deleted("b", "deleted"),
        .seen("b", upTo: 1))
      for index in 0..<8 { try scenario.apply(.published("b", "p\(index)", at: Int64(index))) }
      try scenario.apply(.published("a", "mine", at: 3))
      try scenario.expectOracle()
      for pageSize in 1...4 { try ReadAudit.check(scenario.store, users: [], pageSize: pageSize) }
    },
    Check("9", "an export that is broken off can be repeated") { makeStore in
      struct Enough: Error {}
      let scenario = try Scenario(makeStore, ownPosts: true)
      try scenario.apply(.follow("a", "b", at: 1), .published("b", "p", at: 1), .like("a", "b", "p", at: 1))
      for rows in 0..<6 {
        var left = rows
        do {
          try scenario.store.export { _ in
            if left == 0 { throw Enough() }
            left -= 1
          }
          throw ConformanceFailure("the export did not pass on an error thrown at row \(rows)")
        } catch is Enough {}
      }
      try scenario.expectOracle()
      try scenario.apply(.published("b", "q", at: 1))
      try scenario.expectOracle()
    },
    Check("5", "whoever is not known has empty lists") { makeStore in
      let scenario = try Scenario(makeStore, ownPosts: true)
      try scenario.apply(.follow("a", "b", at: 1))
      try scenario.expectFeed(of: "nobody", [])
      try scenario.expectFeedback(of: "nobody", [])
      try scenario.expectUnread(of: "nobody", 0)
      try scenario.expect(.followers, of: .user("nobody"), [])
      try scenario.expect(.likers, of: .post("b", "none"), [])
      // A relation of posts has no list for a user, nor the other way round.
      try scenario.expect(.likers, of: .user("b"), [])
      try scenario.expect(.followers, of: .post("b", "p"), [])
    },
  ]
}
