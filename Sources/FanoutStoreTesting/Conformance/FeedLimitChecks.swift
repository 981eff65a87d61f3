internal import FanoutStore
internal import SocialEvents

extension StoreConformance {
  /// The newest `count` of posts p0, p1, …, of which `total` were published.
  private static func newest(_ count: Int, of total: Int) -> [Text] {
    (0..<total).reversed().prefix(count).map { Text("b/p\($0)") }
  }

  static let feedLimitChecks: [Check] = [
    Check("5, feedLimit", "a feed at its limit, one over, and far over shows the newest, under replay too") {
      makeStore in
      for limit in 1...4 {
        for total in [limit, limit + 1, 2 * limit, 2 * limit + 1, 5 * limit + 1] {
          let posts = (0..<total).map { Event.published("b", "p\($0)", at: Int64($0)) }
          for order in [posts, posts.reversed()] {
            let scenario = try Scenario(makeStore, feedLimit: limit)
            try scenario.apply(.follow("a", "b", at: 0))
            for event in order { try scenario.apply(event) }
            try scenario.expectFeed(of: "a", newest(limit, of: total))
            try scenario.expectNoEffect(of: "the replay of a feed of limit \(limit)") {
              for event in order { try scenario.apply(event) }
              try scenario.apply(order)
              try scenario.apply(.follow("a", "b", at: 0))
            }
          }
        }
      }
    },
    Check("5, feedLimit", "a trimmed feed that loses posts is refilled from the facts, down to the last one") {
      makeStore in
      for limit in 1...4 {
        for newestFirst in [true, false] {
          let scenario = try Scenario(makeStore, feedLimit: limit)
          try scenario.apply(.follow("a", "b", at: 0))
          for index in 0..<15 { try scenario.apply(.published("b", "p\(index)", at: Int64(index))) }
          for index in newestFirst ? Array((0..<15).reversed()) : Array(0..<15) {
            try scenario.apply(.deleted("b", "p\(index)"))
            try scenario.expectOracle("after the deletion of p\(index)")
          }
          try scenario.expectFeed(of: "a", [])
        }
      }
    },
    Check("5, feedLimit", "a trimmed feed is refilled after an unfollow, across hours and decades") { makeStore in
      for step in [Int64(1), 3_600_000_000, 31_557_600_000_000] {
        let scenario = try Scenario(makeStore, feedLimit: 3)
        try scenario.apply(.follow("a", "old", at: 0), .follow("a", "new", at: 0))
        for index in Int64(0)..<10 {
          try scenario.apply(
            .published("old", "p\(index)", at: 0, publishedAt: -10 * step - index * step),
            .published("new", "p\(index)", at: 0, publishedAt: index))
        }
        try scenario.expectFeed(of: "a", ["new/p9", "new/p8", "new/p7"])
        try scenario.apply(.unfollow("a", "new", at: 1))
        try scenario.expectFeed(of: "a", ["old/p0", "old/p1", "old/p2"])
        try scenario.apply(.deleted("old", "p1"))
        try scenario.expectFeed(of: "a", ["old/p0", "old/p2", "old/p3"])
        try scenario.apply(.follow("a", "new", at: 2))
        try scenario.expectFeed(of: "a", ["new/p9", "new/p8", "new/p7"])
        try scenario.expectOracle()
      }
    },
    Check("5, feedLimit", "republication moves posts across the edge of a trimmed feed, both ways") { makeStore in
      let scenario = try Scenario(makeStore, feedLimit: 2)
      try scenario.apply(.follow("a", "b", at: 0))
      for index in 0..<12 { try scenario.apply(.published("b", "p\(index)", at: Int64(index))) }
      try scenario.apply(.published("b", "p0", at: 100))
      try scenario.expectFeed(of: "a", ["b/p0", "b/p11"])
      try scenario.apply(.published("b", "p0", at: 101, publishedAt: -1))
      try scenario.expectFeed(of: "a", ["b/p11", "b/p10"])
      // All that the feed holds becomes older than what was trimmed from it.
      for index in 3..<12 {
        try scenario.apply(.published("b", "p\(index)", at: 200, publishedAt: -100 - Int64(index)))
        try scenario.expectOracle("after p\(index) went back")
      }
      try scenario.expectFeed(of: "a", ["b/p2", "b/p1"])
    },
    Check("5, feedLimit", "a post older than all that a full feed keeps does not push out a newer one") { makeStore in
      let scenario = try Scenario(makeStore, feedLimit: 3)
      try scenario.apply(.follow("a", "b", at: 0))
      for index in 0..<10 { try scenario.apply(.published("b", "p\(index)", at: Int64(index))) }
      for index in Int64(0)..<10 { try scenario.apply(.published("b", "late\(index)", at: -5 - index)) }
      try scenario.expectFeed(of: "a", newest(3, of: 10))
      for index in 0..<10 { try scenario.apply(.deleted("b", "p\(index)")) }
      try scenario.expectFeed(of: "a", ["b/late0", "b/late1", "b/late2"])
    },
    Check("5, feedLimit", "more equal times than the limit are cut by author and post, and refilled so") { makeStore in
      for limit in 1...4 {
        let scenario = try Scenario(makeStore, feedLimit: limit)
        try scenario.apply(.follow("a", "b", at: 0), .follow("a", "c", at: 0))
        for index in [3, 0, 7, 5, 1, 8, 2, 6, 4] {
          try scenario.apply(.published("b", "p\(index)", at: 1), .published("c", "p\(index)", at: 1))
        }
        try scenario.expectOracle("with limit \(limit)")
        for index in (3..<9).reversed() {
          try scenario.apply(.deleted("c", "p\(index)"))
          try scenario.expectOracle("after the deletion of c/p\(index)")
        }
        try scenario.apply(.unfollow("a", "c", at: 1))
        try scenario.expectOracle("after the unfollow")
      }
    },
    Check("5, feedLimit", "the back-fill on follow is right when the author has more posts than the limit") {
      makeStore in
      for limit in 1...3 {
        let scenario = try Scenario(makeStore, feedLimit: limit)
        try scenario.apply((0..<12).map { .published("b", "p\($0)", at: Int64($0)) })
        try scenario.apply((0..<2).map { .published("c", "p\($0)", at: Int64($0) - 50) })
        try scenario.apply(.follow("a", "b", at: 1), .follow("a", "c", at: 1))
        try scenario.expectFeed(of: "a", newest(limit, of: 12))
        // What the back-fill left out comes when what it brought goes.
        for index in (0..<12).reversed() {
          try scenario.apply(.deleted("b", "p\(index)"))
          try scenario.expectOracle("after the deletion of p\(index) with limit \(limit)")
        }
        try scenario.expectFeed(of: "a", Array([Text("c/p1"), "c/p0"].prefix(limit)))
      }
    },
    Check("5, feedLimit", "posts that lie before what a back-fill brought do not hide a gap") { makeStore in
      for limit in 1...8 {
        let scenario = try Scenario(makeStore, feedLimit: limit)
        try scenario.apply(.follow("a", "c", at: 1))
        try scenario.apply((0..<limit).map { .published("c", "old\($0)", at: -50 - Int64($0)) })
        try scenario.apply((0..<20).map { .published("b", "p\($0)", at: Int64($0)) })
        // There are older posts of "b" than the follow brings, and newer ones than those of "c".
        try scenario.apply(.deleted("c", "old0"), .follow("a", "b", at: 1))
        try scenario.apply(.published("b", "p20", at: 20))
        try scenario.apply(.published("c", "older", at: -90))
        for index in (0...20).reversed() {
          try scenario.apply(.deleted("b", "p\(index)"))
          try scenario.expectOracle("after the deletion of p\(index) with limit \(limit)")
        }
      }
    },
    Check("5, feedLimit", "own posts are trimmed and refilled with the others") { makeStore in
      let scenario = try Scenario(makeStore, feedLimit: 2, ownPosts: true)
      try scenario.apply(.follow("a", "b", at: 0))
      for index in Int64(0)..<8 {
        try scenario.apply(.published("a", "p\(index)", at: index), .published("b", "p\(index)", at: 100 + index))
      }
      try scenario.expectFeed(of: "a", ["b/p7", "b/p6"])
      try scenario.apply(.unfollow("a", "b", at: 1))
      try scenario.expectFeed(of: "a", ["a/p7", "a/p6"])
      try scenario.apply((1..<8).map { .deleted("a", "p\($0)") })
      try scenario.expectFeed(of: "a", ["a/p0"])
      try scenario.expectOracle()
    },
    Check("5, feedLimit", "a large feed is trimmed and refilled as a small one") { makeStore in
      let scenario = try Scenario(makeStore, feedLimit: 40)
      try scenario.apply(.follow("a", "b", at: 0), .follow("c", "b", at: 0))
      for start in stride(from: 0, to: 300, by: 20) {
        try scenario.apply((start..<start + 20).map { .published("b", "p\($0)", at: Int64($0)) })
      }
      try scenario.expectFeed(of: "a", newest(40, of: 300))
      for start in stride(from: 280, through: 100, by: -30) {
        try scenario.apply((start..<start + 20).map { .deleted("b", "p\($0)") })
        try scenario.expectOracle("after the deletion of p\(start) and 19 more")
      }
    },
  ]
}
