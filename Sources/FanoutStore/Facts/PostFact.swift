public import SocialEvents

/// What is known of a post: whether it was deleted, and the publication with the greatest version (SPEC 4).
///
/// One event tells one of the two; merging facts never forgets either, so the order of merging does not matter.
public struct PostFact: Hashable, Sendable {
  public struct Publication: Hashable, Sendable {
    public let version: Version
    public let publishedAt: Timestamp

    public init(version: Version, publishedAt: Timestamp) {
      self.version = version
      self.publishedAt = publishedAt
    }

    /// The greater version wins; of two with one version the later `publishedAt`, so that order never matters.
    public func supersedes(_ other: Publication) -> Bool {
      version != other.version ? version > other.version : publishedAt > other.publishedAt
    }
  }

  public let post: Post
  public private(set) var publication: Publication?
  /// Deletion always wins, whatever the versions.
  public private(set) var isDeleted: Bool
  public let key: StoreKey
  public let authorKey: StoreKey

  public init(post: Post, publication: Publication?, isDeleted: Bool) {
    self.post = post
    self.publication = publication
    self.isDeleted = isDeleted
    key = StoreKey(post)
    authorKey = StoreKey(post.author)
  }

  /// Published and not deleted: it belongs in feeds.
  public var isLive: Bool { publication != nil && !isDeleted }

  /// Adds what `other` knows of the same post.
  public mutating func merge(_ other: PostFact) {
    isDeleted = isDeleted || other.isDeleted
    if let theirs = other.publication {
      if let ours = publication, !theirs.supersedes(ours) { return }
      publication = theirs
    }
  }
}

/// "The user has seen all feedback up to this time."
public struct SeenFact: Hashable, Sendable {
  public let user: UserID
  public let upTo: Timestamp
  public let key: StoreKey

  public init(user: UserID, upTo: Timestamp) {
    self.user = user
    self.upTo = upTo
    key = StoreKey(user)
  }
}
