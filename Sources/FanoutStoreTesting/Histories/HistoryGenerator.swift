private import FanoutStore
internal import SocialEvents

/// Makes small, nasty histories: few users, posts, times and event ids, so that everything collides with everything.
///
/// Among them are undos before what they undo, deletions before publications, republications under another time, two events
/// with one id, equal times, own likes, clocks in 2099, records delivered twice, and the same event in two records.
public struct HistoryGenerator {
  private var random: SeededGenerator
  private let seed: UInt64
  private let users: [UserID]
  private let posts: [Post]
  private let times: [Int64]
  private let deletions: Int
  /// Feeds are filled first and thinned out afterwards, each event later than the one before; else anything at any time.
  private let isPhased: Bool
  /// How much of the history is made, in hundredths.
  private var progress = 0
  private let extras = [
    "{}", #"{"text":"hi"}"#, #"{"text":"hi" }"#, "{ \"a\" :\t[1, 2.50e1,null ] }", #"{"é":"\u00e9/\"\\"}"#,
  ]
  private var usedIDs: [EventID] = []

  public init(seed: UInt64) {
    self.seed = seed
    // Neighbouring seeds should have nothing in common.
    var random = SeededGenerator(seed: seed &* 0xD6E8_FEB8_6659_FD93)
    _ = random.next()

    let userNames = [
      "a", "a!", "b", "B", "é", "e\u{301}", #"q"uo\te"#, "日本/語", "a b", " a", String(repeating: "x", count: 128),
      String(repeating: "x", count: 127) + "y", "😀", "1",
    ]
    let postNames = ["1", "2", "10", "p", "é", "e\u{301}", #"\"#, "p!", String(repeating: "é", count: 64)]
    users = random.shuffled(userNames).prefix(2 + random.number(5)).map(UserID.init(unchecked:))
    isPhased = random.chance(50)
    var posts: [Post] = []
    for author in isPhased ? users.prefix(2) : users[...] {
      for name in random.shuffled(postNames).prefix(isPhased ? 5 + random.number(4) : 1 + random.number(4)) {
        posts.append(Post(author: author, id: PostID(unchecked: name)))
      }
    }
    self.posts = posts
    times = Self.times(style: random.number(4), using: &random)
    deletions = random.pick([0, 2, 6, 15])
    self.random = random
  }

  static let present: Int64 = 1_785_000_000_000_000
  static let year2099: Int64 = 4_080_000_000_000_000

  /// The times of one history: all the same, microseconds apart, hours apart, or from 1970 to now.
  private static func times(style: Int, using random: inout SeededGenerator) -> [Int64] {
    switch style {
    case 0: [present]
    case 1: (0..<4).map { present + $0 }
    case 2: (0..<12).map { present - Int64($0) * 3_600_000_000 * Int64(1 + random.number(50)) }
    default: [0, 1, 1_000_000, present / 1000, present / 4, present / 2, present - 1_000_000, present, present + 1]
    }
  }

  /// The history of the seed.
  public mutating func history() -> History {
    let limit = random.chance(15) ? 1000 : 1 + random.number(isPhased ? 3 : 6)
    let settings = StoreSettings(feedLimit: limit, includesOwnPosts: random.chance(60))
    let length = isPhased ? 60 + random.number(60) : 5 + random.number(random.pick([10, 40, 120]))
    var records: [Record] = []
    while records.count < length {
      progress = records.count * 100 / length
      if let earlier = records.last, random.chance(12) {
        records.append(again(random.chance(50) ? earlier : random.pick(records)))
      } else {
        records.append(record())
      }
    }
    return History(seed: seed, settings: settings, records: records)
  }

  /// The same record once more, the same event sent a second time, or another event of the same version about the same thing.
  private mutating func again(_ record: Record) -> Record {
    let event = record.event
    switch random.number(3) {
    case 0: return record
    case 1: return Record(event, recorded: recorded(of: event.time.microseconds))
    default:
      let assertion: Assertion =
        switch event.assertion {
        case .present(let edge, _, _), .absent(let edge): random.chance(75) ? present(edge) : .absent(edge)
        case .published(let post, _): .published(post, publishedAt: Timestamp(microseconds: random.pick(times)))
        default: event.assertion
        }
      return Record(
        Event(id: event.id, source: event.source, time: event.time, assertion: assertion), recorded: record.recorded)
    }
  }

  private mutating func record() -> Record {
    let time = isPhased ? Self.present + Int64(progress) * 1_000_000 : anyTime()
    let event = Event(
      id: identifier(), source: "test", time: Timestamp(microseconds: time), assertion: assertion())
    return Record(event, recorded: recorded(of: time))
  }

  // MARK: Times

  private mutating func anyTime() -> Int64 {
    random.chance(6) ? Self.year2099 + Int64(random.number(3)) : random.pick(times)
  }

  /// When the log got a record of that time: mostly soon afterwards, sometimes so that the clock rule is at its edge.
  private mutating func recorded(of time: Int64) -> Timestamp? {
    let tolerance: Int64 = 300_000_000
    if random.chance(3) { return nil }
    if time >= Self.year2099 { return Timestamp(microseconds: random.pick(times)) }
    let recorded =
      switch random.number(10) {
      case 0: time - tolerance
      case 1: time - tolerance - 1
      case 2: random.pick(times)
      default: time + Int64(random.number(2_000_000))
      }
    return Timestamp(microseconds: max(0, recorded))
  }

  // MARK: Contents

  /// Mostly a new one; sometimes one that another event has already.
  private mutating func identifier() -> EventID {
    if !usedIDs.isEmpty && random.chance(20) { return random.pick(usedIDs) }
    let name = random.pick(["e", "E", "é", "e\u{301}", "\"", ""]) + String(random.number(400))
    let id = EventID(unchecked: name)
    usedIDs.append(id)
    return id
  }

  private mutating func assertion() -> Assertion {
    if isPhased && random.chance(80) { return progress < 50 ? filling() : thinning() }
    switch random.number(100) {
    case 0..<24: return present(follow())
    case 24..<34: return .absent(follow())
    case 34..<44: return present(onPost(.like))
    case 44..<50: return .absent(onPost(.like))
    case 50..<55: return present(onPost(.favorite))
    case 55..<58: return .absent(onPost(.favorite))
    case 58..<62: return .seen(random.pick(users), upTo: Timestamp(microseconds: anyTime()))
    case 62..<(62 + deletions): return .deleted(random.pick(posts))
    default: return published()
    }
  }

  private mutating func filling() -> Assertion {
    random.chance(35) ? present(followOfAuthor()) : published()
  }

  private mutating func thinning() -> Assertion {
    switch random.number(10) {
    case 0...2: .deleted(random.pick(posts))
    case 3...4: .absent(followOfAuthor())
    case 5...6: present(followOfAuthor())
    default: published()
    }
  }

  private mutating func published() -> Assertion {
    let publishedAt = random.chance(60) ? Timestamp(microseconds: anyTime()) : nil
    return .published(random.pick(posts), publishedAt: publishedAt)
  }

  private mutating func present(_ edge: Edge) -> Assertion {
    .present(edge, silent: random.chance(15), extra: random.chance(25) ? random.pick(extras) : nil)
  }

  private mutating func follow() -> Edge {
    let actor = random.number(users.count)
    let target = (actor + 1 + random.number(users.count - 1)) % users.count
    return Edge(kind: .follow, actor: users[actor], recipient: users[target], post: nil)
  }

  /// One of the two who have posts, when the history is phased.
  private mutating func followOfAuthor() -> Edge {
    let target = random.number(2)
    let actor = (target + 1 + random.number(users.count - 1)) % users.count
    return Edge(kind: .follow, actor: users[actor], recipient: users[target], post: nil)
  }

  private mutating func onPost(_ kind: EdgeKind) -> Edge {
    let post = random.pick(posts)
    return Edge(kind: kind, actor: random.pick(users), recipient: post.author, post: post.id)
  }
}
