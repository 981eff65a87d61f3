public import SocialEvents

/// The lists of SPEC 5's relations, each a direction of one kind of edge.
public enum Relation: String, CaseIterable, Sendable {
  /// Who follows a user, and whom a user follows.
  case followers, following
  /// Who likes a post, and which posts a user likes.
  case likers, liked
  /// Who has a post as a favorite, and a user's favorites.
  case favoriters, favorites

  public var kind: EdgeKind {
    switch self {
    case .followers, .following: .follow
    case .likers, .liked: .like
    case .favoriters, .favorites: .favorite
    }
  }

  /// Whether the list is read from the actor's side: whom they follow, what they like.
  public var isByActor: Bool { self == .following || self == .liked || self == .favorites }
  /// Whether the list belongs to a post (and not to a user).
  public var isOfPost: Bool { self == .likers || self == .favoriters }
}

/// A user, or a post for `likers` and `favoriters`; also what an entry of a relation list is.
public enum Subject: Hashable, Sendable {
  case user(UserID)
  case post(Post)

  public var key: StoreKey {
    switch self {
    case .user(let user): StoreKey(user)
    case .post(let post): StoreKey(post)
    }
  }
}

/// An item of a feed: newest first by (publishedAt, author, post) (SPEC 5).
public struct FeedItem: Hashable, Comparable, Sendable {
  public let publishedAt: Timestamp
  public let post: Post

  public init(publishedAt: Timestamp, post: Post) {
    self.publishedAt = publishedAt
    self.post = post
  }

  /// Older first; ids compare by their bytes.
  public static func < (a: Self, b: Self) -> Bool {
    if a.publishedAt != b.publishedAt { return a.publishedAt < b.publishedAt }
    if a.post.author != b.post.author { return a.post.author < b.post.author }
    return a.post.id < b.post.id
  }
}

/// An entry of a user's feedback tab (SPEC 5).
public struct FeedbackEntry: Hashable, Sendable {
  public let edge: Edge
  /// When it happened: the winning event's version time.
  public let time: Timestamp
  /// The id of the winning event.
  public let event: EventID
  public let extra: String?
  /// Whether the time is not after what the user has seen.
  public let isSeen: Bool
  /// Where the entry stands in the list.
  public let position: FeedbackPosition

  public init(
    edge: Edge, time: Timestamp, event: EventID, extra: String?, isSeen: Bool, position: FeedbackPosition
  ) {
    self.edge = edge
    self.time = time
    self.event = event
    self.extra = extra
    self.isSeen = isSeen
    self.position = position
  }

  public init(_ fact: EdgeFact, seenUpTo: Timestamp?) {
    self.init(
      edge: fact.edge, time: fact.version.time, event: fact.version.event, extra: fact.extra,
      isSeen: seenUpTo.map { fact.version.time <= $0 } ?? false,
      position: FeedbackPosition(
        time: fact.version.time, kind: fact.edge.kind, actor: fact.actorKey, subject: fact.subjectKey))
  }

  /// The same for every processing of the same winning event, unique within all feedback, and sorted by time (SPEC 5).
  public var id: String { position.id }
}

/// An entry's place in a feedback list: time, then the edge. A list is total in this order, so no page boundary loses an entry.
public struct FeedbackPosition: Hashable, Comparable, Sendable {
  public let time: Timestamp
  public let kind: EdgeKind
  public let actor: StoreKey
  public let subject: StoreKey

  public init(time: Timestamp, kind: EdgeKind, actor: StoreKey, subject: StoreKey) {
    self.time = time
    self.kind = kind
    self.actor = actor
    self.subject = subject
  }

  public static func < (a: Self, b: Self) -> Bool {
    if a.time != b.time { return a.time < b.time }
    if a.kind != b.kind { return a.kind < b.kind }
    return a.actor != b.actor ? a.actor < b.actor : a.subject < b.subject
  }

  /// The time in sixteen hexadecimal digits, the kind, the keys of actor and subject.
  public var id: String {
    StoreKey.hexadecimal(UInt64(bitPattern: time.microseconds)) + "-\(kind.rawValue)-"
      + actor.hexadecimal + "-" + subject.hexadecimal
  }

  /// The position that `id` spells, or nil.
  public init?(id: String) {
    let parts = id.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 4, parts[0].utf8.count == 16, let time = UInt64(parts[0], radix: 16),
      let kind = UInt8(parts[1]).flatMap(EdgeKind.init(rawValue:)),
      let actor = StoreKey(hexadecimal: parts[2]), let subject = StoreKey(hexadecimal: parts[3])
    else { return nil }
    self.init(
      time: Timestamp(microseconds: Int64(bitPattern: time)), kind: kind, actor: actor, subject: subject)
    // Numbers may be spelt in other ways, with a sign or capitals; an id in one only.
    if !self.id.utf8.elementsEqual(id.utf8) { return nil }
  }
}

/// A row of the canonical dump (SPEC 9).
public enum ViewRow: Hashable, Sendable {
  case edge(Edge)
  case feed(of: UserID, FeedItem)
  case feedback(of: UserID, FeedbackEntry)
}
