internal import FanoutStore
internal import SocialEvents

extension StoreConformance {
  static let factChecks: [Check] = [
    Check("4", "the greatest version of an edge wins, in any order") { makeStore in
      let events: [Event] = [
        .follow("a", "b", at: 1), .unfollow("a", "b", at: 2), .follow("a", "b", at: 3, extra: #"{"n":3}"#),
      ]
      for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let scenario = try Scenario(makeStore)
        for index in order { try scenario.apply(events[index]) }
        try scenario.expect(.followers, of: .user("b"), [.user("a")])
        try expectEqual(try scenario.feedback(of: "b").map(\.time), [.sample(3)], "time of the entry, order \(order)")
        try expectEqual(
          try scenario.feedback(of: "b").map(\.extra), [#"{"n":3}"#], "extra of the entry, order \(order)")
        try scenario.expectOracle("in order \(order)")
      }
    },
    Check("4", "an undo that comes before what it undoes keeps it undone") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(
        .unfollow("a", "b", at: 5), .unlike("a", "b", "p", at: 5), .unfavorite("a", "b", "p", at: 5))
      try scenario.apply(.follow("a", "b", at: 4), .like("a", "b", "p", at: 4), .favorite("a", "b", "p", at: 4))
      try scenario.expect(.followers, of: .user("b"), [])
      try scenario.expect(.likers, of: .post("b", "p"), [])
      try scenario.expectFeedback(of: "b", [])
      try scenario.apply(.like("a", "b", "p", at: 6))
      try scenario.expect(.likers, of: .post("b", "p"), [.user("a")])
    },
    Check("1, version", "of equal times the greater event id wins, by bytes") { makeStore in
      // "é" composed is C3 A9 and decomposed 65 CC 81; "10" is before "9".
      for (lesser, greater) in [("e1", "e2"), ("10", "9"), ("B", "a"), ("e\u{301}", "é"), ("x", "x!")] {
        for undoFirst in [true, false] {
          let scenario = try Scenario(makeStore)
          let undo = Event.unlike("a", "b", "p", at: 1, id: lesser)
          let redo = Event.like("a", "b", "p", at: 1, id: greater)
          for event in undoFirst ? [undo, redo] : [redo, undo] { try scenario.apply(event) }
          try scenario.expect(.likers, of: .post("b", "p"), [.user("a")])
          try scenario.apply(.unlike("a", "b", "p", at: 1, id: greater + "0"))
          try scenario.expect(.likers, of: .post("b", "p"), [])
        }
      }
    },
    Check("4", "two events with one version: absent beats silent beats present, then the greater extra") { makeStore in
      let ascending: [Event] = [
        .like("a", "b", "p", at: 1), .like("a", "b", "p", at: 1, extra: #"{"a":1}"#),
        .like("a", "b", "p", at: 1, extra: #"{"a":2}"#), .like("a", "b", "p", at: 1, silent: true),
        .like("a", "b", "p", at: 1, silent: true, extra: "{}"), .unlike("a", "b", "p", at: 1),
      ]
      for lesser in ascending.indices {
        for greater in ascending.indices[(lesser + 1)...] {
          for order in [[lesser, greater], [greater, lesser]] {
            let apart = try Scenario(makeStore)
            for index in order { try apart.apply(ascending[index]) }
            try apart.expectOracle("of \(order) one by one")
            let together = try Scenario(makeStore)
            try together.apply(order.map { ascending[$0] })
            try together.expectOracle("of \(order) in one batch")
          }
        }
      }
    },
    Check("4", "deletion wins over every publication, before and after, whatever the versions") { makeStore in
      for deletedAt in [Int64(0), 2, 9] {
        for deleteFirst in [true, false] {
          let scenario = try Scenario(makeStore, ownPosts: true)
          try scenario.apply(.follow("a", "b", at: 0))
          let delete = Event.deleted("b", "p", at: deletedAt)
          let publish = Event.published("b", "p", at: 5)
          for event in deleteFirst ? [delete, publish] : [publish, delete] { try scenario.apply(event) }
          try scenario.expectFeed(of: "a", [])
          try scenario.expectFeed(of: "b", [])
          try scenario.apply(.published("b", "p", at: 100))
          try scenario.expectFeed(of: "a", [])
        }
      }
    },
    Check("4", "the greatest version's publishedAt holds; of equal versions the later one") { makeStore in
      let events: [Event] = [
        .published("b", "p", at: 1, publishedAt: 90), .published("b", "p", at: 3, publishedAt: 10, id: "e"),
        .published("b", "p", at: 3, publishedAt: 20, id: "e"), .published("b", "p", at: 2, publishedAt: 80),
      ]
      for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
        let scenario = try Scenario(makeStore)
        try scenario.apply(.follow("a", "b", at: 0), .published("b", "other", at: 15))
        for index in order { try scenario.apply(events[index]) }
        try scenario.expectFeed(of: "a", ["b/p", "b/other"])
        try scenario.expectOracle("in order \(order)")
      }
    },
    Check("4", "seen only moves forward") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.follow("a", "b", at: 1), .follow("c", "b", at: 3))
      try scenario.expectUnread(of: "b", 2)
      try scenario.apply(.seen("b", upTo: 2, at: 10))
      try scenario.expectUnread(of: "b", 1)
      try scenario.apply(.seen("b", upTo: 0, at: 20))
      try scenario.expectUnread(of: "b", 1)
      try scenario.apply(.seen("b", upTo: 3, at: 5))
      try scenario.expectUnread(of: "b", 0)
    },
    Check("4", "repetition changes no register and nothing that readers see") { makeStore in
      let scenario = try Scenario(makeStore, ownPosts: true)
      let events: [Event] = [
        .follow("a", "b", at: 1), .follow("c", "b", at: 1, silent: true), .unfollow("b", "a", at: 2),
        .like("a", "b", "p", at: 3, extra: #"{ "x":1}"#), .favorite("c", "b", "p", at: 3), .published("b", "p", at: 2),
        .published("b", "q", at: 2, publishedAt: 7), .deleted("b", "gone", at: 1), .published("b", "gone", at: 9),
        .seen("b", upTo: 3),
      ]
      // A post's publication and its deletion are one register.
      try expectEqual(try scenario.apply(events), 9, "registers changed at first")
      try scenario.expectNoEffect(of: "repetition") {
        try expectEqual(try scenario.apply(events), 0, "registers changed by the same batch again")
        for event in events.reversed() {
          try expectEqual(try scenario.apply(event), 0, "registers changed by \(event.type) again")
        }
      }
      try scenario.expectOracle()
    },
    Check("4", "superseded events change no register") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(
        .follow("a", "b", at: 5), .unlike("a", "b", "p", at: 5), .published("b", "p", at: 5), .seen("b", upTo: 5))
      try scenario.expectNoEffect(of: "superseded events") {
        let changes = try scenario.apply(
          .unfollow("a", "b", at: 4), .like("a", "b", "p", at: 4), .published("b", "p", at: 4), .seen("b", upTo: 4))
        try expectEqual(changes, 0, "registers changed by superseded events")
      }
    },
    Check("6", "views derived again for an event that has lost follow the winner") { makeStore in
      let scenario = try Scenario(makeStore)
      let lost: [Event] = [.follow("a", "b", at: 1), .published("b", "p", at: 1), .published("b", "q", at: 1)]
      try scenario.apply(lost)
      try scenario.apply(.unfollow("a", "b", at: 2), .deleted("b", "p"), .published("b", "q", at: 3))
      try scenario.derive(lost)
      try scenario.expectFeed(of: "a", [])
      try scenario.expectOracle()
    },
    Check("6", "an event whose facts are known already still has its views derived") { makeStore in
      let scenario = try Scenario(makeStore)
      let events: [Event] = [.follow("a", "b", at: 1), .published("b", "p", at: 1)]
      // A crash after step 1, and the batch again.
      try scenario.commit(events)
      try expectEqual(try scenario.apply(events), 0, "registers changed by the repetition")
      try scenario.expectFeed(of: "a", ["b/p"])
    },
    Check("4", "an empty batch does nothing") { makeStore in
      let scenario = try Scenario(makeStore)
      try expectEqual(try scenario.apply(), 0, "registers changed")
      try scenario.expectOracle()
    },
  ]
}
