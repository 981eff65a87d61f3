public import FanoutStore
public import SocialEvents

/// Compares what a store exports with what its reads show, page by page: one rule for all of them (SPEC 5).
public struct ReadAudit {
  private let store: any Store
  private let pageSize: Int
  private var edges: [Edge] = []
  private var feeds: [UserID: [FeedItem]] = [:]
  private var feedback: [UserID: [FeedbackEntry]] = [:]

  private init(_ store: any Store, pageSize: Int) throws {
    self.store = store
    self.pageSize = pageSize
    var rows: [ViewRow] = []
    try store.export { rows.append($0) }
    for row in rows {
      switch row {
      case .edge(let edge): edges.append(edge)
      case .feed(let user, let item): feeds[user, default: []].append(item)
      case .feedback(let user, let entry): feedback[user, default: []].append(entry)
      }
    }
  }

  /// - Parameters:
  ///   - users: whose lists to read, besides the users who have rows in the export.
  ///   - pageSize: how many entries to read at a time.
  /// - Throws: `ConformanceFailure` that names the list.
  public static func check(_ store: any Store, users: some Sequence<UserID>, pageSize: Int) throws {
    let audit = try ReadAudit(store, pageSize: pageSize)
    var all = Set(users).union(audit.feeds.keys).union(audit.feedback.keys)
    for edge in audit.edges { all.formUnion([edge.actor, edge.recipient]) }
    for user in all {
      try audit.checkFeed(of: user)
      try audit.checkFeedback(of: user)
    }
    try audit.checkRelations(of: all)
  }

  /// Reads a list to its end.
  static func pages<T>(_ what: String, _ size: Int, _ page: (T?, Int) throws -> [T]) throws -> [T] {
    var all: [T] = []
    while true {
      let next = try page(all.last, size)
      try expect(next.count <= size, "\(what): a page of \(next.count) where \(size) were asked for")
      if next.isEmpty { return all }
      all += next
      try expect(all.count < 100_000, "\(what): paging does not end")
    }
  }

  private func checkFeed(of user: UserID) throws {
    let what = "feed of '\(user)'"
    let shown = try Self.pages(what, pageSize) { try store.feed(of: user, after: $0, limit: $1) }
    try expectEqual(shown, (feeds[user] ?? []).sorted(by: >), what + " in pages of \(pageSize), against the export")
    try expect(shown.count <= store.settings.feedLimit, what + " has \(shown.count) items, over its limit")
    try expectEqual(Set(shown.map(\.post)).count, shown.count, what + ": different posts")
  }

  private func checkFeedback(of user: UserID) throws {
    let what = "feedback of '\(user)'"
    let shown = try Self.pages(what, pageSize) { try store.feedback(of: user, after: $0?.position, limit: $1) }
    let exported = (feedback[user] ?? []).sorted { $0.position > $1.position }
    try expectEqual(shown, exported, what + " in pages of \(pageSize), against the export")
    try expectEqual(Set(shown.map(\.edge)).count, shown.count, what + ": different edges")
    try expectEqual(try store.unreadCount(of: user), shown.count { !$0.isSeen }, "unread count of '\(user)'")
  }

  private func checkRelations(of users: Set<UserID>) throws {
    var expected: [Relation: [Subject: Set<Subject>]] = [:]
    for edge in edges {
      let object = edge.post.map { Subject.post(Post(author: edge.recipient, id: $0)) } ?? .user(edge.recipient)
      for relation in Relation.allCases where relation.kind == edge.kind {
        let (owner, entry) = relation.isByActor ? (Subject.user(edge.actor), object) : (object, .user(edge.actor))
        let isNew = expected[relation, default: [:]][owner, default: []].insert(entry).inserted
        try expect(isNew, "the export has the edge \(edge) twice")
      }
    }
    for relation in Relation.allCases {
      // Also lists that must be empty, such as the likers of a deleted post that somebody once liked.
      let owners = Set(users.map(Subject.user)).union(expected[relation]?.keys.map { $0 } ?? [])
      for owner in owners {
        let what = "\(relation) of \(owner)"
        let shown = try Self.pages(what, pageSize) { try store.relation(relation, of: owner, after: $0, limit: $1) }
        let entries = expected[relation]?[owner] ?? []
        try expectEqual(Set(shown), entries, what + " in pages of \(pageSize), against the export")
        try expectEqual(shown.count, entries.count, what + ": entries, each once")
        try expectEqual(try store.count(relation, of: owner), entries.count, "count of \(what)")
      }
    }
  }
}
