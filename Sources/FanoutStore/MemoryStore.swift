public import SocialEvents
private import Synchronization

/// The model: SPEC 4 and 5, executable. It keeps facts only and computes every view when it is read.
///
/// It is what other stores are tested against, and is written to be read, not to be fast.
public final class MemoryStore: Store {
  fileprivate struct Facts {
    var edges: [EdgeKind: [Edge: EdgeFact]] = [:]
    var posts: [Post: PostFact] = [:]
    var seen: [UserID: Timestamp] = [:]
  }

  public let settings: StoreSettings
  private let facts = Mutex(Facts())

  public init(settings: StoreSettings = .standard) {
    self.settings = settings
  }

  // MARK: Facts (SPEC 4)

  public func commitFacts(_ batch: FactBatch) -> Int {
    facts.withLock { facts in
      var changed = 0
      for fact in batch.edges {
        let held = facts.edges[fact.edge.kind]?[fact.edge]
        if held.map({ fact.supersedes($0) }) ?? true {
          facts.edges[fact.edge.kind, default: [:]][fact.edge] = fact
          changed += 1
        }
      }
      for fact in batch.posts {
        let held = facts.posts[fact.post]
        var merged = held ?? fact
        merged.merge(fact)
        if merged != held {
          facts.posts[fact.post] = merged
          changed += 1
        }
      }
      for fact in batch.seen where facts.seen[fact.user].map({ fact.upTo > $0 }) ?? true {
        facts.seen[fact.user] = fact.upTo
        changed += 1
      }
      return changed
    }
  }

  public func deriveViews(of batch: FactBatch, sliceSize: Int) -> Derivation { Derivation() }
  public func derive(_ slice: FanoutSlice, sliceSize: Int) -> Int { 0 }

  // MARK: Views (SPEC 5)

  public func relation(_ relation: Relation, of subject: Subject, after: Subject?, limit: Int) -> [Subject] {
    let start = after?.key
    let entries = facts.withLock { $0.relation(relation, of: subject) }
      .map { (key: $0.key, entry: $0) }
      .filter { entry in start.map { entry.key > $0 } ?? true }
    return entries.sorted { $0.key < $1.key }.prefix(max(0, limit)).map(\.entry)
  }

  public func count(_ relation: Relation, of subject: Subject) -> Int {
    facts.withLock { $0.relation(relation, of: subject).count }
  }

  public func feed(of user: UserID, after: FeedItem?, limit: Int) -> [FeedItem] {
    let all = facts.withLock { $0.feed(of: user, ownPosts: settings.includesOwnPosts) }
    let shown = all.sorted(by: >).prefix(settings.feedLimit)
    return Array(shown.filter { item in after.map { item < $0 } ?? true }.prefix(max(0, limit)))
  }

  public func feedback(of user: UserID, after: FeedbackPosition?, limit: Int) -> [FeedbackEntry] {
    let all = facts.withLock { $0.feedback(of: user) }
      .filter { entry in after.map { entry.position < $0 } ?? true }
    return Array(all.sorted { $0.position > $1.position }.prefix(max(0, limit)))
  }

  public func unreadCount(of user: UserID) -> Int {
    facts.withLock { $0.feedback(of: user).count { !$0.isSeen } }
  }

  public func export(_ body: (ViewRow) throws -> Void) throws {
    let facts = facts.withLock { $0 }
    var users: Set<UserID> = Set(facts.posts.keys.map(\.author))
    for fact in facts.edges.values.flatMap(\.values) where facts.isShown(fact) {
      users.formUnion([fact.edge.actor, fact.edge.recipient])
      try body(.edge(fact.edge))
    }
    for user in users {
      for item in feed(of: user, after: nil, limit: .max) { try body(.feed(of: user, item)) }
      for entry in facts.feedback(of: user) { try body(.feedback(of: user, entry)) }
    }
  }
}

extension MemoryStore.Facts {
  /// Present, and not on a deleted post.
  func isShown(_ fact: EdgeFact) -> Bool {
    guard fact.isPresent else { return false }
    guard let post = fact.edge.post else { return true }
    return posts[Post(author: fact.edge.recipient, id: post)]?.isDeleted != true
  }

  func relation(_ relation: Relation, of subject: Subject) -> [Subject] {
    (edges[relation.kind] ?? [:]).values.filter(isShown).compactMap { fact in
      let edge = fact.edge
      let object = edge.post.map { Subject.post(Post(author: edge.recipient, id: $0)) } ?? .user(edge.recipient)
      if relation.isByActor { return .user(edge.actor) == subject ? object : nil }
      return object == subject ? .user(edge.actor) : nil
    }
  }

  func feed(of user: UserID, ownPosts: Bool) -> [FeedItem] {
    posts.values.compactMap { fact in
      guard fact.isLive, let publication = fact.publication else { return nil }
      let author = fact.post.author
      let follows = Edge(kind: .follow, actor: user, recipient: author, post: nil)
      let belongs = author == user ? ownPosts : edges[.follow]?[follows]?.isPresent == true
      return belongs ? FeedItem(publishedAt: publication.publishedAt, post: fact.post) : nil
    }
  }

  func feedback(of user: UserID) -> [FeedbackEntry] {
    edges.values.flatMap(\.values)
      .filter { $0.edge.recipient == user && $0.edge.actor != user && !$0.isSilent && isShown($0) }
      .map { FeedbackEntry($0, seenUpTo: seen[user]) }
  }
}
