internal import FanoutStore
internal import SocialEvents

extension StoreConformance {
  /// Ids that stores have mixed up or mangled: quotes, wildcards, spaces, two spellings of one character, prefixes of each other.
  private static let odd = [
    "a", "A", "a!", "a ", " a", "é", "e\u{301}", "'", "''", #"""#, #"\"#, #"\""#, "%", "_", "a_", "a%", "日本語", "😀",
    "\u{FEFF}a", "a/b",
    "1", "01", "1.0", "1e0", "-1", "NULL", "null", "\u{A0}a", "ſ", "s", "ß", "ss", "İ", "i",
    String(repeating: "x", count: 128), String(repeating: "x", count: 127), String(repeating: "é", count: 64),
  ]

  static let identifierChecks: [Check] = [
    Check("1", "users with odd bytes are kept apart, and come back as they were") { makeStore in
      let scenario = try Scenario(makeStore, ownPosts: true)
      try scenario.apply(odd.map { .follow("fan", $0, at: 1) })
      try scenario.apply(odd.map { .published($0, "p", at: 1) })
      try scenario.apply(odd.map { .like($0, "star", "p", at: 1) })
      try scenario.expect(.following, of: .user("fan"), Set(odd.map { .user($0) }))
      try scenario.expect(.likers, of: .post("star", "p"), Set(odd.map { .user($0) }))
      for user in odd {
        try scenario.expect(.followers, of: .user(user), [.user("fan")])
        try scenario.expect(.liked, of: .user(user), [.post("star", "p")])
        try scenario.expectFeed(of: user, [Text("\(user)/p")])
      }
      try expectEqual(try scenario.feedback(of: "star").count, odd.count, "entries")
      try scenario.expectOracle()
    },
    Check("1", "posts with odd bytes are kept apart, and come back as they were") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.follow("fan", "b", at: 1))
      try scenario.apply(odd.map { .published("b", $0, at: 1) } + odd.map { .favorite("fan", "b", $0, at: 1) })
      try scenario.expect(.favorites, of: .user("fan"), Set(odd.map { .post("b", $0) }))
      try scenario.expectOracle()
      for post in odd.dropLast() { try scenario.apply(.deleted("b", post)) }
      try scenario.expectFeed(of: "fan", odd.suffix(1).map { Text("b/\($0)") })
      try scenario.expectOracle()
    },
    Check("1", "events with odd ids are told apart, and come back as they were") { makeStore in
      for id in odd + [" ", "  "] {
        let scenario = try Scenario(makeStore)
        try scenario.apply(.like("a", "b", "p", at: 1, id: id), .published("b", "p", at: 1, id: id))
        let entries = try scenario.feedback(of: "b")
        try expectEqual(entries.map { Text($0.event.string) }, [Text(id)], "event of the entry")
        try scenario.expectOracle()
      }
    },
    Check("1", "where an author ends and a post begins makes a difference") { makeStore in
      let scenario = try Scenario(makeStore)
      let pairs = [
        ("ab", "c"), ("a", "bc"), ("a b", "c"), ("a", "b c"), ("a/b", "c"), ("a", "b/c"), ("a:b", "c"), ("a", "b:c"),
      ]
      for (author, post) in pairs {
        try scenario.apply(
          .follow("fan", author, at: 1), .published(author, post, at: 1), .like("fan", author, post, at: 1))
      }
      try scenario.apply(.deleted("ab", "c"), .deleted("a", "b c"), .deleted("a/b", "c"), .deleted("a", "b:c"))
      try scenario.expect(
        .liked, of: .user("fan"), [.post("a", "bc"), .post("a b", "c"), .post("a", "b/c"), .post("a:b", "c")])
      try scenario.expectOracle()
    },
    Check("1", "a user and a post with the same bytes are not each other") { makeStore in
      let scenario = try Scenario(makeStore)
      try scenario.apply(.follow("a", "b", at: 1), .like("a", "b", "b", at: 1), .like("b", "a", "b", at: 1))
      try scenario.apply(.deleted("b", "b"), .deleted("a", "a"))
      try scenario.expect(.followers, of: .user("b"), [.user("a")])
      try scenario.expect(.liked, of: .user("b"), [.post("a", "b")])
      try scenario.expectOracle()
    },
  ]
}
