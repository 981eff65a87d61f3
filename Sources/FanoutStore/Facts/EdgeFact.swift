public import SocialEvents

/// "This edge is present, or absent, as of this version": one state of the register of SPEC 4.
public struct EdgeFact: Hashable, Sendable {
  public let edge: Edge
  public let version: Version
  public let isPresent: Bool
  /// Recorded, but nobody gets a feedback entry (SPEC 2). False for an absent edge.
  public let isSilent: Bool
  public let extra: String?
  public let actorKey: StoreKey
  /// The key of the followed user, or of the liked or favorited post.
  public let subjectKey: StoreKey
  public let recipientKey: StoreKey

  public init(edge: Edge, version: Version, isPresent: Bool, isSilent: Bool = false, extra: String? = nil) {
    self.edge = edge
    self.version = version
    self.isPresent = isPresent
    self.isSilent = isSilent
    self.extra = extra
    actorKey = StoreKey(edge.actor)
    recipientKey = StoreKey(edge.recipient)
    subjectKey = edge.post.map { StoreKey(Post(author: edge.recipient, id: $0)) } ?? recipientKey
  }

  /// The kind of state, as stores keep it: 0 present, 1 present and silent, 2 absent. The order also breaks ties.
  public var state: Int { isPresent ? (isSilent ? 1 : 0) : 2 }

  /// Whether this fact holds against `other` about the same edge: the greater version wins (SPEC 4).
  ///
  /// Two different assertions with one version, which takes a producer that gives an id to two events, are decided by their
  /// content, so that even then the order of arrival does not matter: absent beats silent beats present, then the greater
  /// `extra` by bytes.
  public func supersedes(_ other: EdgeFact) -> Bool {
    if version != other.version { return version > other.version }
    if state != other.state { return state > other.state }
    return (other.extra ?? "").utf8.lexicographicallyPrecedes((extra ?? "").utf8)
  }

  /// What the fact is about; orders facts as a store's unique index does.
  var registerKey: RegisterKey { RegisterKey(kind: edge.kind.rawValue, first: actorKey, second: subjectKey) }
}

extension PostFact {
  var registerKey: RegisterKey { RegisterKey(kind: 0, first: key, second: .lowest) }
}

extension SeenFact {
  var registerKey: RegisterKey { RegisterKey(kind: 0, first: key, second: .lowest) }
}

/// Which register of its kind a fact is about.
struct RegisterKey: Equatable, Comparable {
  let kind: UInt8
  let first: StoreKey
  let second: StoreKey

  static func < (a: Self, b: Self) -> Bool {
    if a.kind != b.kind { return a.kind < b.kind }
    return a.first != b.first ? a.first < b.first : a.second < b.second
  }
}
