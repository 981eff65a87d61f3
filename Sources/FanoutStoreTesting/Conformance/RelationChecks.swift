internal import FanoutStore
internal import SocialEvents

extension StoreConformance {
  static let relationChecks: [Check] = [
    Check("5, relations", "every kind of edge shows in both directions, and is counted") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(
        .follow("a", "b", at: 1), .follow("c", "b", at: 1), .follow("b", "a", at: 1), .like("a", "b", "p", at: 1),
        .like("c", "b", "p", at: 1), .like("a", "c", "p", at: 1), .favorite("a", "b", "q", at: 1))
      try scenario.expect(.followers, of: .user("b"), [.user("a"), .user("c")])
      try scenario.expect(.followers, of: .user("a"), [.user("b")])
      try scenario.expect(.followers, of: .user("c"), [])
      try scenario.expect(.following, of: .user("a"), [.user("b")])
      try scenario.expect(.likers, of: .post("b", "p"), [.user("a"), .user("c")])
      try scenario.expect(.likers, of: .post("c", "p"), [.user("a")])
      try scenario.expect(.likers, of: .post("b", "q"), [])
      try scenario.expect(.liked, of: .user("a"), [.post("b", "p"), .post("c", "p")])
      try scenario.expect(.favoriters, of: .post("b", "q"), [.user("a")])
      try scenario.expect(.favorites, of: .user("a"), [.post("b", "q")])
      try scenario.expect(.favorites, of: .user("c"), [])
      try scenario.expectOracle()
    },
    Check("5, relations", "a deleted post hides its edges from lists and counts, a like that comes later too") {
      makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(
        .like("a", "b", "p", at: 1), .like("a", "b", "q", at: 1), .favorite("c", "b", "p", at: 1),
        .follow("a", "b", at: 1))
      try scenario.apply(.deleted("b", "p", at: 2))
      try scenario.apply(.like("c", "b", "p", at: 3))
      try scenario.expect(.likers, of: .post("b", "p"), [])
      try scenario.expect(.favoriters, of: .post("b", "p"), [])
      try scenario.expect(.liked, of: .user("a"), [.post("b", "q")])
      try scenario.expect(.liked, of: .user("c"), [])
      try scenario.expect(.favorites, of: .user("c"), [])
      try scenario.expect(.followers, of: .user("b"), [.user("a")])
      try scenario.expectOracle()
    },
    Check("5, relations", "a post of one author deleted leaves the same post id of another") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.like("a", "b", "p", at: 1), .like("a", "c", "p", at: 1), .deleted("b", "p", at: 2))
      try scenario.expect(.liked, of: .user("a"), [.post("c", "p")])
      try scenario.expect(.likers, of: .post("c", "p"), [.user("a")])
    },
    Check("4", "likes of a post that was never published here are valid") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.like("a", "b", "p", at: 1))
      try scenario.expect(.likers, of: .post("b", "p"), [.user("a")])
      try scenario.expectFeedback(of: "b", ["like a p"])
    },
    Check("5, relations", "pages of any size make up the list") { makeStore in
      let scenario = try Scenario(makeStore)
      let actors = (0..<23).map { "user \($0)" }
      try scenario.apply(actors.map { .follow($0, "b", at: 1) })
      try scenario.apply(actors.map { .like("a", $0, "p", at: 1) })
      for size in [1, 2, 5, 22, 23, 24, 1000] {
        let followers = try ReadAudit.pages("followers", size) {
          try scenario.store.relation(.followers, of: .user("b"), after: $0, limit: $1)
        }
        try expectEqual(followers.count, 23, "followers in pages of \(size)")
        try expectEqual(Set(followers), Set(actors.map(Subject.user)), "followers in pages of \(size)")
        let liked = try ReadAudit.pages("liked", size) {
          try scenario.store.relation(.liked, of: .user("a"), after: $0, limit: $1)
        }
        try expectEqual(liked.count, 23, "liked in pages of \(size)")
        try expectEqual(Set(liked), Set(actors.map { Subject.post($0, "p") }), "liked in pages of \(size)")
      }
      let none = try scenario.store.relation(.followers, of: .user("b"), after: nil, limit: 0)
      try expectEqual(none, [], "a page of no entries")
    },
    Check("5, relations", "a page after an entry that has gone goes on where it was") { makeStore in
      let scenario = try Scenario(makeStore)
      let actors = (0..<9).map { "user \($0)" }
      try scenario.apply(actors.map { .follow($0, "b", at: 1) })
      let all = try scenario.store.relation(.followers, of: .user("b"), after: nil, limit: .max)
      guard all.count == 9, case .user(let fourth) = all[3] else { throw ConformanceFailure("followers are \(all)") }
      try scenario.apply(.unfollow(fourth.string, "b", at: 2))
      let rest = try scenario.store.relation(.followers, of: .user("b"), after: all[3], limit: .max)
      try expectEqual(rest, Array(all[4...]), "followers after one who unfollowed")
    },
    Check("5, relations", "counts follow the register, not the events") { makeStore in
      let scenario = try Scenario(makeStore)
      for time in Int64(1)...4 {
        for _ in 0..<3 { try scenario.apply(.follow("a", "b", at: 2 * time)) }
        try expectEqual(try scenario.store.count(.followers, of: .user("b")), 1, "followers after follow \(time)")
        for _ in 0..<3 { try scenario.apply(.unfollow("a", "b", at: 2 * time + 1)) }
        try expectEqual(try scenario.store.count(.followers, of: .user("b")), 0, "followers after unfollow \(time)")
      }
    },
  ]
}
