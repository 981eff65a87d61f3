/// The kinds of edge (SPEC 1). The raw values are what stores keep.
public enum EdgeKind: UInt8, CaseIterable, Sendable, Comparable {
  case follow = 0
  case like = 1
  case favorite = 2

  /// The word for it in events, feedback entries and the canonical dump.
  public var name: String {
    switch self {
    case .follow: "follow"
    case .like: "like"
    case .favorite: "favorite"
    }
  }

  public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// A post: the pair of its author and its id (SPEC 1).
public struct Post: Hashable, Sendable {
  public let author: UserID
  public let id: PostID

  public init(author: UserID, id: PostID) {
    self.author = author
    self.id = id
  }
}

/// Who does what to whom (SPEC 1): an actor follows a user, or likes or favorites a post.
public struct Edge: Hashable, Sendable {
  public let kind: EdgeKind
  public let actor: UserID
  /// The user whom the edge is about: the followed user, or the author of the liked or favorited post.
  public let recipient: UserID
  /// The liked or favorited post; nil for a follow.
  public let post: PostID?

  /// - Throws: `InvalidEvent` with reason `.selfFollow` when both are the same user.
  public static func follow(actor: UserID, target: UserID) throws(InvalidEvent) -> Edge {
    if actor == target { throw InvalidEvent(.selfFollow, "actor and target are the same user") }
    return Edge(kind: .follow, actor: actor, recipient: target, post: nil)
  }
  public static func like(actor: UserID, post: Post) -> Edge {
    Edge(kind: .like, actor: actor, recipient: post.author, post: post.id)
  }
  public static func favorite(actor: UserID, post: Post) -> Edge {
    Edge(kind: .favorite, actor: actor, recipient: post.author, post: post.id)
  }

  /// For values known to be consistent, such as ones read back from a store.
  package init(kind: EdgeKind, actor: UserID, recipient: UserID, post: PostID?) {
    self.kind = kind
    self.actor = actor
    self.recipient = recipient
    self.post = post
  }
}

/// What an event asserts (SPEC 2).
public enum Assertion: Hashable, Sendable {
  /// The edge is present. A silent one makes no feedback entry; `extra` is a JSON object of at most 4 KiB, as received, that
  /// the feedback entry carries unchanged.
  case present(Edge, silent: Bool, extra: String?)
  case absent(Edge)
  /// The post exists since `publishedAt` (nil: since the event's time).
  case published(Post, publishedAt: Timestamp?)
  case deleted(Post)
  /// The user has seen all feedback up to a time.
  case seen(UserID, upTo: Timestamp)
}

/// A social event (SPEC 2): who says so, when, and what.
public struct Event: Hashable, Sendable {
  public let id: EventID
  /// The CloudEvents `source`: which service emitted the event. Not empty.
  public let source: String
  public let time: Timestamp
  public let assertion: Assertion
  /// A W3C trace context that travels with the event, or nil.
  public let traceparent: String?

  public init(id: EventID, source: String, time: Timestamp, assertion: Assertion, traceparent: String? = nil) {
    self.id = id
    self.source = source
    self.time = time
    self.assertion = assertion
    self.traceparent = traceparent
  }

  public var type: EventType {
    switch assertion {
    case .present(let edge, _, _):
      switch edge.kind {
      case .follow: .follow
      case .like: .like
      case .favorite: .favorite
      }
    case .absent(let edge):
      switch edge.kind {
      case .follow: .unfollow
      case .like: .unlike
      case .favorite: .unfavorite
      }
    case .published: .postPublished
    case .deleted: .postDeleted
    case .seen: .feedbackSeen
    }
  }
}

/// The event types of SPEC 2, as `type` spells them.
public enum EventType: String, CaseIterable, Sendable {
  case follow, unfollow, like, unlike, favorite, unfavorite
  case postPublished = "post-published"
  case postDeleted = "post-deleted"
  case feedbackSeen = "feedback-seen"
}
