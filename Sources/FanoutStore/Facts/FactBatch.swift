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

  /// Leaves one fact for each register, the one that holds, in the order of the keys.
  ///
  /// Stores then write each row once, and in the order in which it lies in their indexes.
  public mutating func reduce() {
    if edges.count > 1 {
      edges.sort { $0.precedes($1) }
      Self.foldNeighbours(&edges, same: { $0.isAboutSameEdge(as: $1) }) { kept, next in
        if next.supersedes(kept) { kept = next }
      }
    }
    if posts.count > 1 {
      posts.sort { $0.key < $1.key }
      Self.foldNeighbours(&posts, same: { $0.key == $1.key }) { $0.merge($1) }
    }
    if seen.count > 1 {
      seen.sort { $0.key < $1.key }
      Self.foldNeighbours(&seen, same: { $0.key == $1.key }) { kept, next in
        if next.upTo > kept.upTo { kept = next }
      }
    }
  }

  public mutating func removeAll() {
    edges.removeAll(keepingCapacity: true)
    posts.removeAll(keepingCapacity: true)
    seen.removeAll(keepingCapacity: true)
    eventCount = 0
  }

  private static func foldNeighbours<T>(_ list: inout [T], same: (T, T) -> Bool, fold: (inout T, T) -> Void) {
    var last = 0
    for index in 1..<list.count {
      if same(list[last], list[index]) {
        fold(&list[last], list[index])
      } else {
        last += 1
        if last != index { list[last] = list[index] }
      }
    }
    list.removeSubrange((last + 1)...)
  }
}
