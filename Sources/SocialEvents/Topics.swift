/// The topics of SPEC 3, with a common prefix.
public struct Topics: Hashable, Sendable {
  /// A family of events: one topic each.
  public enum Family: String, CaseIterable, Sendable {
    case follows, likes, favorites, posts, seen
  }

  public static let defaultPrefix = "social."
  public let prefix: String

  public init(prefix: String = Topics.defaultPrefix) {
    self.prefix = prefix
  }

  /// The topic that the events of `family` go to.
  public func name(of family: Family) -> String { prefix + family.rawValue }
  /// The topics that hold events, in the order of SPEC 3.
  public var events: [String] { Family.allCases.map(name(of:)) }
  /// Slices of large fan-outs, written and read by workers only.
  public var tasks: String { prefix + "fanout-tasks" }
  /// Records that can't be applied.
  public var deadLetters: String { prefix + "dead-letters" }
  /// All seven.
  public var all: [String] { events + [tasks, deadLetters] }
}

extension EventType {
  /// The family whose topic carries events of this type.
  public var family: Topics.Family {
    switch self {
    case .follow, .unfollow: .follows
    case .like, .unlike: .likes
    case .favorite, .unfavorite: .favorites
    case .postPublished, .postDeleted: .posts
    case .feedbackSeen: .seen
    }
  }
}

/// The separator between the parts of a record key or of a key that is hashed: a control character, which no id may hold.
package let keySeparator = "\u{1F}"

extension Assertion {
  /// The record key (SPEC 3): the identity of what is asserted, its parts joined by U+001F.
  ///
  /// `actor␟target` for a follow, `actor␟author␟post` for a like or favorite, `author␟post` for a post, `user` for seen.
  public var key: String {
    switch self {
    case .present(let edge, _, _), .absent(let edge): edge.key
    case .published(let post, _), .deleted(let post): post.key
    case .seen(let user, _): user.string
    }
  }
}

extension Post {
  /// `author␟post`: the post's identity as one string.
  public var key: String { author.string + keySeparator + id.string }
}

extension Edge {
  /// The edge's identity within its kind as one string.
  public var key: String {
    guard let post else { return actor.string + keySeparator + recipient.string }
    return actor.string + keySeparator + recipient.string + keySeparator + post.string
  }
}
