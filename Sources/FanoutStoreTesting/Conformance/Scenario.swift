package import FanoutStore
package import SocialEvents

/// A store, what has happened to it, and short ways to say what it should show.
package final class Scenario {
  package let store: any Store
  /// All that was committed.
  private var records: [Record] = []

  package init(
    _ makeStore: StoreConformance.MakeStore, feedLimit: Int = 1000, ownPosts: Bool = false
  ) throws {
    store = try makeStore(StoreSettings(feedLimit: feedLimit, includesOwnPosts: ownPosts))
  }

  // MARK: Doing

  package static func batch(_ events: [Event], recorded: Timestamp? = nil) -> FactBatch {
    var batch = FactBatch()
    for event in events { batch.append(event, recorded: recorded) }
    batch.reduce()
    return batch
  }

  /// All that a worker does with a batch, slices included.
  /// - Returns: how many registers changed.
  @discardableResult
  package func apply(_ events: Event..., sliceSize: Int = 5000) throws -> Int {
    try apply(events, sliceSize: sliceSize)
  }

  /// - Parameter recorded: the timestamp of the events' records.
  @discardableResult
  package func apply(_ events: [Event], sliceSize: Int = 5000, recorded: Timestamp? = nil) throws -> Int {
    let changes = try commit(events, recorded: recorded)
    for slice in try derive(events, sliceSize: sliceSize, recorded: recorded).slices {
      _ = try store.derive(slice, sliceSize: sliceSize)
    }
    return changes
  }

  /// Step 1 of SPEC 6 only.
  @discardableResult
  package func commit(_ events: [Event], recorded: Timestamp? = nil) throws -> Int {
    records += events.map { Record($0, recorded: recorded) }
    return try store.commitFacts(Self.batch(events, recorded: recorded))
  }

  @discardableResult
  package func derive(_ events: [Event], sliceSize: Int = 5000, recorded: Timestamp? = nil) throws -> Derivation {
    try store.deriveViews(of: Self.batch(events, recorded: recorded), sliceSize: sliceSize)
  }

  // MARK: Expecting

  package func expectFeed(of user: String, _ items: [Text]) throws {
    let feed = try store.feed(of: UserID(unchecked: user), after: nil, limit: .max)
    try expectEqual(feed.map { Text("\($0.post.author)/\($0.post.id)") }, items, "feed of '\(user)'")
  }

  /// Entries as "like a p": the kind, who, and the post if there is one.
  package func expectFeedback(of user: String, _ entries: [Text]) throws {
    let feedback = try feedback(of: user)
    let shown = feedback.map { entry in
      Text("\(entry.edge.kind) \(entry.edge.actor)" + (entry.edge.post.map { " \($0)" } ?? ""))
    }
    try expectEqual(shown, entries, "feedback of '\(user)'")
  }

  package func feedback(of user: String) throws -> [FeedbackEntry] {
    try store.feedback(of: UserID(unchecked: user), after: nil, limit: .max)
  }

  package func expectUnread(of user: String, _ count: Int) throws {
    try expectEqual(try store.unreadCount(of: UserID(unchecked: user)), count, "unread count of '\(user)'")
  }

  package func expect(_ relation: Relation, of subject: Subject, _ entries: Set<Subject>) throws {
    let list = try store.relation(relation, of: subject, after: nil, limit: .max)
    try expectEqual(Set(list), entries, "\(relation) of \(subject)")
    try expectEqual(list.count, entries.count, "\(relation) of \(subject): entries, each once")
    try expectEqual(try store.count(relation, of: subject), entries.count, "count of \(relation) of \(subject)")
  }

  /// The whole dump is what the oracle computes from all that was committed.
  package func expectOracle(_ when: String = "afterwards") throws {
    let expected = Oracle(records, settings: store.settings).lines()
    if let difference = DumpLines.difference(try DumpLines.of(store), from: expected) {
      throw ConformanceFailure("\(when) the store does not show what it should:\n\(difference)")
    }
  }

  /// What `body` does changes no line of the dump.
  package func expectNoEffect(of what: String, _ body: () throws -> Void) throws {
    let before = try DumpLines.of(store)
    try body()
    if let difference = DumpLines.difference(try DumpLines.of(store), from: before) {
      throw ConformanceFailure("\(what) changed what the store shows:\n\(difference)")
    }
  }
}

/// Text that is equal when its bytes are, as ids are.
package struct Text: Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
  private let bytes: [UInt8]

  package init(_ string: String) { bytes = Array(string.utf8) }
  package init(stringLiteral: String) { self.init(stringLiteral) }

  package var description: String { String(decoding: bytes, as: UTF8.self) }
}
