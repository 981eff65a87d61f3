internal import FanoutStore
internal import SocialEvents

extension StoreConformance {
  static let feedbackChecks: [Check] = [
    Check("5, feedback", "entries tell who, what, when and by which event, newest first") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(
        .like("a", "b", "p", at: 2, id: "two"), .follow("a", "b", at: 3, id: "three"),
        .favorite("c", "b", "p", at: 1, id: "one"))
      try scenario.expectFeedback(of: "b", ["follow a", "like a p", "favorite c p"])
      let entries = try scenario.feedback(of: "b")
      try expectEqual(entries.map(\.event.string), ["three", "two", "one"], "events")
      try expectEqual(entries.map(\.time), [.sample(3), .sample(2), .sample(1)], "times")
      try scenario.expectFeedback(of: "a", [])
      try scenario.expectOracle()
    },
    Check("5, feedback", "one entry an edge; an undo removes it, doing it again brings one with another id") {
      makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.like("a", "b", "p", at: 1), .follow("a", "b", at: 1))
      let first = try scenario.feedback(of: "b").map(\.id)
      try scenario.apply(.unlike("a", "b", "p", at: 2), .unfollow("a", "b", at: 2))
      try scenario.expectFeedback(of: "b", [])
      try scenario.apply(.like("a", "b", "p", at: 3))
      try scenario.apply(.like("a", "b", "p", at: 4))
      try scenario.expectFeedback(of: "b", ["like a p"])
      let second = try scenario.feedback(of: "b").map(\.id)
      try expect(Set(first).isDisjoint(with: second), "the id \(second) of an entry of an earlier event came back")
    },
    Check("5, feedback", "reprocessing gives the same ids, which sort by time") { makeStore in
      let events: [Event] = [
        .like("a", "b", "p", at: 1), .like("c", "b", "p", at: 1), .follow("a", "b", at: 2),
        .favorite("a", "b", "q", at: 99),
      ]
      let forth = try Scenario(makeStore)
      for event in events { try forth.apply(event) }
      let back = try Scenario(makeStore)
      for event in events.reversed() { try back.apply(event) }
      let ids = try forth.feedback(of: "b").map(\.id)
      try expectEqual(try back.feedback(of: "b").map(\.id), ids, "ids after another order")
      try expectEqual(ids.sorted(by: >), ids, "ids, sorted")
      try expectEqual(Set(ids).count, 4, "different ids")
    },
    Check("5, feedback", "no page boundary among equal times loses or repeats an entry") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply((0..<7).flatMap { [.follow("user \($0)", "b", at: 1), .like("user \($0)", "b", "p", at: 1)] })
      try scenario.apply(.favorite("a", "b", "p", at: 1), .favorite("a", "b", "q", at: 1), .follow("a", "b", at: 2))
      let whole = try scenario.feedback(of: "b")
      try expectEqual(whole.count, 17, "entries")
      for size in 1...18 {
        let paged = try ReadAudit.pages("feedback", size) {
          try scenario.store.feedback(of: UserID(unchecked: "b"), after: $0?.position, limit: $1)
        }
        try expectEqual(paged, whole, "feedback in pages of \(size)")
      }
    },
    Check("5, feedback", "seen means not after upTo, and unread counts by the same rule") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(
        .follow("a", "b", at: 1), .like("a", "b", "p", at: 2), .like("c", "b", "p", at: 2), .follow("c", "b", at: 3),
        .like("a", "b", "gone", at: 9), .follow("a", "c", at: 1))
      try scenario.apply(.seen("b", upTo: 2), .deleted("b", "gone"))
      try expectEqual(try scenario.feedback(of: "b").map(\.isSeen), [false, true, true, true], "seen")
      try scenario.expectUnread(of: "b", 1)
      try scenario.expectUnread(of: "c", 1)
      try scenario.expectUnread(of: "nobody", 0)
      // Late but old feedback has been seen, too.
      try scenario.apply(.favorite("a", "b", "p", at: 0))
      try scenario.expectUnread(of: "b", 1)
      try scenario.expectOracle()
    },
    Check("2, silent", "a silent edge is recorded, and makes no entry; the winning event decides") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(
        .follow("a", "b", at: 1, silent: true), .like("a", "b", "p", at: 1, silent: true),
        .favorite("a", "b", "p", at: 1, silent: true), .published("b", "p", at: 1))
      try scenario.expect(.followers, of: .user("b"), [.user("a")])
      try scenario.expect(.likers, of: .post("b", "p"), [.user("a")])
      try scenario.expectFeed(of: "a", ["b/p"])
      try scenario.expectFeedback(of: "b", [])
      try scenario.expectUnread(of: "b", 0)
      try scenario.apply(.like("a", "b", "p", at: 2))
      try scenario.expectFeedback(of: "b", ["like a p"])
      try scenario.apply(.like("a", "b", "p", at: 3, silent: true))
      try scenario.expectFeedback(of: "b", [])
      try scenario.expectOracle()
    },
    Check("2, extra", "extra is carried unchanged, white space, escapes, duplicates and all") { makeStore in
      let extras = [
        "{}", "{ }", "{\t\r\n \"a\" :\t1.50e+1 , \"a\":[ ] }", #"{"s":"\u00e9é\/\\\"'","n":-0}"#,
        "{\"é\":\"e\u{301}\"}",
        "{\"pad\":\"" + String(repeating: "x", count: 4086) + "\"}",
      ]
      let scenario = try Scenario(makeStore)
      for (index, extra) in extras.enumerated() {
        try scenario.apply(
          .like("a", "b", "p\(index)", at: Int64(index), extra: extra), .follow("u\(index)", "c", at: 1, extra: extra))
      }
      let shown = try scenario.feedback(of: "b").map { Text($0.extra ?? "none") }
      try expectEqual(shown, extras.reversed().map { Text($0) }, "extras")
      try scenario.expectOracle()
      // The next event has none.
      try scenario.apply(.like("a", "b", "p0", at: 100))
      try expectEqual(try scenario.feedback(of: "b").first?.extra, nil, "extra after an event without one")
      try scenario.expectOracle()
    },
    Check("5, feedback", "own likes and favorites are recorded and make no entry") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.like("b", "b", "p", at: 1), .favorite("b", "b", "p", at: 1), .like("a", "b", "p", at: 1))
      try scenario.expect(.likers, of: .post("b", "p"), [.user("a"), .user("b")])
      try scenario.expect(.favorites, of: .user("b"), [.post("b", "p")])
      try scenario.expectFeedback(of: "b", ["like a p"])
      try scenario.expectUnread(of: "b", 1)
      try scenario.expectOracle()
    },
    Check("5, feedback", "deletion of the post removes its entries, before and after them") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.like("a", "b", "p", at: 1), .favorite("c", "b", "p", at: 1), .follow("a", "b", at: 1))
      try scenario.apply(.deleted("b", "p", at: 0), .deleted("b", "q", at: 0))
      try scenario.apply(.like("a", "b", "q", at: 5))
      try scenario.expectFeedback(of: "b", ["follow a"])
      try scenario.expectUnread(of: "b", 1)
      try scenario.expectOracle()
    },
  ]
}
