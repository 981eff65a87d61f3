internal import FanoutStore
internal import SocialEvents

extension StoreConformance {
  private static let followers = (0..<11).map { "user \($0)" }

  /// A store in which eleven users, and two who don't any more, follow "b".
  private static func popular(_ makeStore: MakeStore, feedLimit: Int = 1000, ownPosts: Bool = false) throws -> Scenario
  {
    let scenario = try Scenario(makeStore, feedLimit: feedLimit, ownPosts: ownPosts)
    try scenario.apply(followers.map { .follow($0, "b", at: 1) })
    try scenario.apply(.unfollow("gone 1", "b", at: 1), .unfollow("gone 2", "b", at: 1))
    return scenario
  }

  private static func derive(_ slices: some Sequence<FanoutSlice>, _ scenario: Scenario, sliceSize: Int) throws {
    for slice in slices { _ = try scenario.store.derive(slice, sliceSize: sliceSize) }
  }

  /// In which order to derive the slices of a fan-out: forth, back, each twice, all and then all again.
  private static let orders: [@Sendable ([FanoutSlice]) -> [FanoutSlice]] = [
    { $0 }, { $0.reversed() }, { $0.flatMap { [$0, $0] } }, { $0 + $0.reversed() },
  ]

  static let sliceChecks: [Check] = [
    Check("6, slices", "together, the slices of any size reach every follower, in any order and repeated") {
      makeStore in
      for sliceSize in [1, 2, 3, 5, 12] {
        for order in orders {
          let scenario = try popular(makeStore, ownPosts: true)
          let publish = [Event.published("b", "p", at: 1)]
          try scenario.commit(publish)
          let slices = try scenario.derive(publish, sliceSize: sliceSize).slices
          // There may be none: a store that computes feeds when they are read has nothing to fan out.
          try expectEqual(Set(slices).count, slices.count, "different slices")
          try derive(order(slices), scenario, sliceSize: sliceSize)
          try scenario.expectOracle("after slices of \(sliceSize)")
        }
      }
    },
    Check("6, slices", "a fan-out along no more edges than sliceSize is done at once") { makeStore in
      let scenario = try popular(makeStore)
      let publish = [Event.published("b", "p", at: 1)]
      try scenario.commit(publish)
      try expectEqual(try scenario.derive(publish, sliceSize: 5000).slices, [], "slices")
      try scenario.expectOracle()
    },
    Check("6, slices", "the author has their own post at once") { makeStore in
      let scenario = try popular(makeStore, ownPosts: true)
      let publish = [Event.published("b", "p", at: 1)]
      try scenario.commit(publish)
      try scenario.derive(publish, sliceSize: 1)
      try scenario.expectFeed(of: "b", ["b/p"])
    },
    Check("6, slices", "a deletion between, before or after the slices of its post leaves it nowhere") { makeStore in
      for sliceSize in [1, 2, 3] {
        for cut in [0, 1, 2, 100] {
          for late in orders {
            let scenario = try popular(makeStore, ownPosts: true)
            let publish = [Event.published("b", "p", at: 1)]
            let delete = [Event.deleted("b", "p")]
            try scenario.commit(publish)
            let delivery = try scenario.derive(publish, sliceSize: sliceSize).slices
            try derive(delivery.prefix(cut), scenario, sliceSize: sliceSize)
            try scenario.commit(delete)
            for user in followers + ["b"] { try scenario.expectFeed(of: user, []) }
            let retraction = try scenario.derive(delete, sliceSize: sliceSize).slices
            try derive(late(Array(delivery.dropFirst(cut)) + retraction), scenario, sliceSize: sliceSize)
            // A delivery that comes only now.
            try derive(delivery, scenario, sliceSize: sliceSize)
            try scenario.expectOracle("with slices of \(sliceSize), deleted after \(cut)")
          }
        }
      }
    },
    Check("6, slices", "delivery and retraction of one fan-out are the same slices") { makeStore in
      let scenario = try popular(makeStore)
      let publish = [Event.published("b", "p", at: 1)]
      let delete = [Event.deleted("b", "p")]
      try scenario.commit(publish)
      let delivery = try scenario.derive(publish, sliceSize: 2).slices
      try scenario.commit(delete)
      try expectEqual(Set(try scenario.derive(delete, sliceSize: 2).slices), Set(delivery), "slices of the retraction")
    },
    Check("6, slices", "followers who come and go between the slices get what they should") { makeStore in
      for sliceSize in [1, 2, 3] {
        let scenario = try popular(makeStore)
        let publish = [Event.published("b", "p", at: 1)]
        try scenario.commit(publish)
        let slices = try scenario.derive(publish, sliceSize: sliceSize).slices
        for (index, slice) in slices.enumerated() {
          try scenario.apply(.follow("late \(index)", "b", at: 1), sliceSize: sliceSize)
          if index < followers.count {
            try scenario.apply(.unfollow(followers[index], "b", at: 2), sliceSize: sliceSize)
          }
          try derive([slice], scenario, sliceSize: sliceSize)
        }
        try scenario.expectOracle("with slices of \(sliceSize)")
      }
    },
    Check("6, slices", "followers who come after the ranges were drawn are all reached, however many") { makeStore in
      let scenario = try popular(makeStore)
      let publish = [Event.published("b", "p", at: 1)]
      try scenario.commit(publish)
      let slices = try scenario.derive(publish, sliceSize: 12).slices
      // Their facts are committed, their own back-fill is not done: the slice alone must reach them.
      try scenario.commit((0..<60).map { .follow("late \($0)", "b", at: 1) })
      try derive(slices, scenario, sliceSize: 2)
      try scenario.expectOracle()
    },
    Check("6, slices", "a republication in slices moves the post in every feed, trimmed ones too") { makeStore in
      for sliceSize in [1, 3] {
        for limit in [1, 2, 1000] {
          let scenario = try popular(makeStore, feedLimit: limit)
          for index in 0..<8 {
            try scenario.apply([.published("b", "p\(index)", at: Int64(index))], sliceSize: sliceSize)
          }
          for publishedAt in [Int64(100), -100, 3, 200] {
            let again = [Event.published("b", "p5", at: 1000 + publishedAt, publishedAt: publishedAt)]
            try scenario.apply(again, sliceSize: sliceSize)
            try scenario.expectOracle("at publishedAt \(publishedAt) with limit \(limit)")
          }
        }
      }
    },
    Check("6, slices", "a slice of a post that is not known, or of no followers, does nothing") { makeStore in
      let scenario = try popular(makeStore)
      try scenario.expectNoEffect(of: "a slice of an unknown post") {
        guard let unknown = FanoutSlice(post: .sample("b", "unknown"), index: 0, count: 1),
          let lonely = FanoutSlice(post: .sample("c", "p"), index: 3, count: 4)
        else { throw ConformanceFailure("can't make a slice") }
        try derive([unknown, lonely], scenario, sliceSize: 1)
      }
    },
  ]
}
