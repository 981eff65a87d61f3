public import SocialEvents

/// The facts of a batch of events, by kind of register.
public struct FactBatch: Sendable {
  public private(set) var edges: [EdgeFact] = []
  public private(set) var posts: [PostFact] = []
  public private(set) var seen: [SeenFact] = []
  /// How many events were added.
  public private(set) var eventCount = 0

  public init() {}

  public var isEmpty: Bool { eventCount == 0 }

  /// Adds what an event asserts, its times believed only as far as the clock rule of SPEC 2 goes.
  ///
  /// The rule is applied to every time that an event brings: the version's, `publishedAt` (a post dated in the future would
  /// stick on top of every feed) and `upTo` (all later feedback would count as seen, for ever).
  /// - Parameter recorded: the timestamp of the Kafka record, nil if it carries none.
  public mutating func append(_ event: Event, recorded: Timestamp?) {
    eventCount += 1
    let version = Version(time: event.time.believed(recorded: recorded), event: event.id)
    switch event.assertion {
    case .present(let edge, let silent, let extra):
      edges.append(EdgeFact(edge: edge, version: version, isPresent: true, isSilent: silent, extra: extra))
    case .absent(let edge):
      edges.append(EdgeFact(edge: edge, version: version, isPresent: false))
    case .published(let post, let publishedAt):
      let at = publishedAt.map { $0.believed(recorded: recorded) } ?? version.time
      posts.append(PostFact(post: post, publication: .init(version: version, publishedAt: at), isDeleted: false))
    case .deleted(let post):
      posts.append(PostFact(post: post, publication: nil, isDeleted: true))
    case .seen(let user, let upTo):
      seen.append(SeenFact(user: user, upTo: upTo.believed(recorded: recorded)))
    }
  }

  /// Adds what another batch holds.
  public mutating func append(contentsOf other: FactBatch) {
    edges += other.edges
    posts += other.posts
    seen += other.seen
    eventCount += other.eventCount
  }

  /// Leaves one fact for each register, the one that holds, in the order of the keys.
  ///
  /// Stores then write each row once, and in the order in which it lies in their indexes.
  public mutating func reduce() {
    Self.reduce(&edges, key: \.registerKey) { kept, next in
      if next.supersedes(kept) { kept = next }
    }
    Self.reduce(&posts, key: \.registerKey) { $0.merge($1) }
    Self.reduce(&seen, key: \.registerKey) { kept, next in
      if next.upTo > kept.upTo { kept = next }
    }
  }

  public mutating func removeAll() {
    edges.removeAll(keepingCapacity: true)
    posts.removeAll(keepingCapacity: true)
    seen.removeAll(keepingCapacity: true)
    eventCount = 0
  }

  /// Sorts small keys with the places of their facts, as moving the facts themselves about would cost far more.
  private static func reduce<Fact>(
    _ facts: inout [Fact], key: (Fact) -> RegisterKey, fold: (inout Fact, Fact) -> Void
  ) {
    if facts.count < 2 { return }
    var order = facts.indices.map { (key: key(facts[$0]), index: $0) }
    order.sort { $0.key < $1.key }
    var reduced: [Fact] = []
    reduced.reserveCapacity(facts.count)
    var last: RegisterKey?
    for (key, index) in order {
      if key == last {
        fold(&reduced[reduced.count - 1], facts[index])
      } else {
        reduced.append(facts[index])
        last = key
      }
    }
    facts = reduced
  }
}
