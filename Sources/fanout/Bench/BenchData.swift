internal import SocialEvents

/// Made-up data for benchmarks: a network with a heavy tail, ids that look like UUIDs, always the same.
struct BenchData {
  /// SplitMix64: small, fast, the same everywhere.
  struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var z = state
      z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
      z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
      return z ^ (z >> 31)
    }
  }

  private var random: Generator
  private(set) var users: [UserID]
  private var clock: Int64 = 1_700_000_000_000_000

  init(users count: Int, seed: UInt64 = 1) {
    var random = Generator(state: seed)
    users = (0..<count).map { _ in UserID(unchecked: Self.uuid(&random)) }
    self.random = random
  }

  static func uuid(_ random: inout Generator) -> String {
    EventID.version7(milliseconds: random.next() >> 16, using: &random).string
  }

  /// Popular users come up much more often: the square of a uniform number, twice over.
  mutating func popular() -> UserID {
    let u = Double.random(in: 0..<1, using: &random)
    return users[Int(u * u * u * u * Double(users.count))]
  }

  mutating func anyone() -> UserID { users[Int.random(in: 0..<users.count, using: &random)] }

  mutating func post(by author: UserID) -> Post {
    Post(author: author, id: PostID(unchecked: String(Int.random(in: 0..<50, using: &random))))
  }

  mutating func event(_ assertion: Assertion) -> Event {
    clock += 1_000
    let id = EventID.version7(milliseconds: UInt64(clock / 1000), using: &random)
    return Event(id: id, source: "/bench", time: Timestamp(microseconds: clock), assertion: assertion)
  }

  mutating func follow() -> Assertion {
    while true {
      let (actor, target) = (anyone(), popular())
      if let edge = try? Edge.follow(actor: actor, target: target) { return .present(edge, silent: false, extra: nil) }
    }
  }

  /// Follows, likes and favorites, one in twenty taken back.
  mutating func edgeEvents(_ count: Int) -> [Event] {
    var events: [Event] = []
    events.reserveCapacity(count)
    for _ in 0..<count {
      let assertion: Assertion
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<8: assertion = follow()
      case 8..<15: assertion = .present(.like(actor: anyone(), post: post(by: popular())), silent: false, extra: nil)
      case 15..<19:
        assertion = .present(.favorite(actor: anyone(), post: post(by: popular())), silent: false, extra: nil)
      default: assertion = .absent(.like(actor: anyone(), post: post(by: popular())))
      }
      events.append(event(assertion))
    }
    return events
  }

  /// Edges and posts mixed, one post in forty deleted again.
  mutating func history(_ count: Int) -> [Event] {
    var events = edgeEvents(count * 4 / 5)
    var published: [Post] = []
    while events.count < count {
      if !published.isEmpty, Int.random(in: 0..<40, using: &random) == 0 {
        events.append(event(.deleted(published[Int.random(in: 0..<published.count, using: &random)])))
      } else {
        let post = Post(author: anyone(), id: PostID(unchecked: Self.uuid(&random)))
        published.append(post)
        events.append(event(.published(post, publishedAt: nil)))
      }
    }
    return events.shuffled(using: &random)
  }
}
