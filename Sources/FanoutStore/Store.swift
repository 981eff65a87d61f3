public import SocialEvents

/// What a store is set up for. Every worker and reader of one store must agree, so the store keeps it.
public struct StoreSettings: Hashable, Sendable {
  /// How many of a feed's newest items readers see (SPEC 5), at least 1.
  public var feedLimit: Int
  /// Whether a user's own posts are in their feed (SPEC 5).
  public var includesOwnPosts: Bool

  public static let standard = StoreSettings(feedLimit: 1000, includesOwnPosts: true)

  public init(feedLimit: Int = 1000, includesOwnPosts: Bool = true) {
    self.feedLimit = max(1, feedLimit)
    self.includesOwnPosts = includesOwnPosts
  }
}

/// What deriving views did.
public struct Derivation: Sendable {
  /// Feed rows that were new.
  public var deliveries = 0
  /// Fan-outs left to be done slice by slice, by whoever does `Store.derive(_:sliceSize:)` for each.
  public var slices: [FanoutSlice] = []

  public init(deliveries: Int = 0, slices: [FanoutSlice] = []) {
    self.deliveries = deliveries
    self.slices = slices
  }
}

/// The storage adapter: all that the worker, the command and readers ask of a store.
///
/// Calls block; give each store a thread of its own. A store may be called from several threads, and several processes may
/// have the same one open. `FanoutStoreTesting` has the conformance suite that every adapter must pass.
///
/// The worker calls `commitFacts`, then `deriveViews` with the same batch, then hands over the slices, and acknowledges the
/// batch only when all three are done (SPEC 6). A crash in between repeats them, so repeating any of them must change nothing.
public protocol Store: Sendable {
  var settings: StoreSettings { get }

  /// Step 1 of SPEC 6: records what the events assert, and is durable when it returns.
  /// - Parameter batch: reduced, that is one fact for each register, sorted by key.
  /// - Returns: how many registers changed; the others were known or superseded.
  func commitFacts(_ batch: FactBatch) throws(StoreError) -> Int

  /// Steps 2 and 3 of SPEC 6: brings the views of everything the batch is about in line with the committed facts, whether or
  /// not its events are the winners. What a write assumed holds again after its commit, or was taken back, when this returns.
  /// - Parameter sliceSize: a fan-out along more follow edges than this is returned as slices, and not done.
  func deriveViews(of batch: FactBatch, sliceSize: Int) throws(StoreError) -> Derivation

  /// Brings the feeds of a slice's followers in line with the facts, in transactions of at most `sliceSize` feed rows.
  /// - Returns: feed rows that were new.
  func derive(_ slice: FanoutSlice, sliceSize: Int) throws(StoreError) -> Int

  /// A relation list (SPEC 5), in an order that is stable but means nothing.
  /// - Parameters:
  ///   - subject: the user, or for `likers` and `favoriters` the post, whose list it is.
  ///   - after: the last entry of the page before.
  func relation(
    _ relation: Relation, of subject: Subject, after: Subject?, limit: Int
  ) throws(StoreError) -> [Subject]

  /// How many entries `relation(_:of:after:limit:)` has in all (SPEC 5).
  func count(_ relation: Relation, of subject: Subject) throws(StoreError) -> Int

  /// A user's feed, newest first, at most `settings.feedLimit` items in all pages together (SPEC 5).
  func feed(of user: UserID, after: FeedItem?, limit: Int) throws(StoreError) -> [FeedItem]

  /// A user's feedback, newest first (SPEC 5).
  func feedback(of user: UserID, after: FeedbackPosition?, limit: Int) throws(StoreError) -> [FeedbackEntry]

  /// How many entries of the feedback list are not seen (SPEC 5).
  func unreadCount(of user: UserID) throws(StoreError) -> Int

  /// Calls `body` for every row that a reader would be shown, each once, in any order, as of one moment.
  func export(_ body: (ViewRow) throws -> Void) throws
}
