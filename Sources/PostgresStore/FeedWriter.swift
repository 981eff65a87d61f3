internal import FanoutStore
internal import SocialEvents

/// Brings feeds in line with the committed facts (SPEC 5 and 6), set by set.
///
/// Nobody is locked while facts are read. Each step reads facts, writes rows and commits; then it reads again what it went by
/// and repeats for whatever is different now (`PostSync`, `EdgeSync`). So of two writers in a race the one that commits last
/// sees the other, and sets right what either of them wrote or removed.
///
/// Rows of `feed_row` are locked in the order of their keys, by one statement in a transaction. Rows of `feed_trim` are too, and
/// never by a transaction that has already locked rows of `feed_row`. That order leaves no circle to wait in.
struct FeedWriter {
  let database: Connection
  let settings: StoreSettings
  let hooks: StepHooks

  /// Bounds a transaction, and with it the memory for sorting, whatever the batch holds.
  static let rowsPerTransaction = 50_000

  private var posts: PostSync { PostSync(database: database, settings: settings, hooks: hooks) }
  private var edges: EdgeSync { EdgeSync(database: database, settings: settings, hooks: hooks) }

  // MARK: A batch

  func derive(_ batch: FactBatch, sliceSize: Int) throws(StoreError) -> Derivation {
    var result = Derivation()
    try derivePosts(batch.posts, sliceSize: sliceSize, into: &result)
    // The batch is sorted by kind, and follows come first.
    let follows = batch.edges.prefix { $0.edge.kind == .follow }
    let unsettled = try edges.sync(
      follows.map { FollowEdge(actor: $0.actorKey, subject: $0.subjectKey) }, deliveries: &result.deliveries)
    try settle(unsettled)
    return result
  }

  private func derivePosts(_ facts: [PostFact], sliceSize: Int, into result: inout Derivation) throws(StoreError) {
    if facts.isEmpty { return }
    let audiences = try countEdges(to: Set(facts.map(\.authorKey)), atMost: sliceSize + 1)
    let large = Set(audiences.filter { $0.value > sliceSize }.keys)
    let sizes = large.isEmpty ? [:] : try countEdges(to: large, atMost: .max)
    var work: [PostWork] = []
    var rows = 0
    for fact in facts {
      let audience = audiences[fact.authorKey] ?? 0
      if rows + audience > Self.rowsPerTransaction {
        try sync(&work, &result.deliveries)
        rows = 0
      }
      if audience > sliceSize {
        result.slices += FanoutSlice.slices(
          of: fact.post, edgeCount: sizes[fact.authorKey] ?? audience, sliceSize: sliceSize)
        work.append(PostWork(key: fact.key, alongEdges: false))
        rows += 1
      } else {
        work.append(PostWork(key: fact.key, alongEdges: true))
        rows += audience + 1
      }
    }
    try sync(&work, &result.deliveries)
  }

  private func sync(_ work: inout [PostWork], _ deliveries: inout Int) throws(StoreError) {
    if work.isEmpty { return }
    try settle(try posts.sync(work, keys: .lowest ... .highest, ownFeeds: true, deliveries: &deliveries))
    work.removeAll(keepingCapacity: true)
  }

  // MARK: A slice

  func derive(_ slice: FanoutSlice, sliceSize: Int) throws(StoreError) -> Int {
    let keys = slice.keys
    let work = [PostWork(key: StoreKey(slice.post), alongEdges: true)]
    var deliveries = 0
    var low = keys.lowerBound
    // However many followers have come since the ranges were drawn, all are reached, `sliceSize` at a time.
    while true {
      let unsettled = try posts.sync(
        work, keys: low...keys.upperBound, limit: max(1, sliceSize), ownFeeds: false, deliveries: &deliveries)
      try settle(unsettled)
      // Looked up now: who came after the rows were written and counts among the first moves the mark down, never up.
      let last = try lastOfChunk(to: StoreKey(slice.post.author), keys: low...keys.upperBound, size: sliceSize)
      guard let last, last < keys.upperBound else { return deliveries }
      low = last.successor
    }
  }

  private func settle(_ owners: Set<StoreKey>) throws(StoreError) {
    try FeedTrimmer(database: database, settings: settings, hooks: hooks).settle(owners)
  }

  // MARK: Look-ups

  /// How many edges each author has, present or absent, counted up to a limit.
  private func countEdges(to authors: Set<StoreKey>, atMost limit: Int) throws(StoreError) -> [StoreKey: Int] {
    let counts = try database.query(
      database.choose(Self.countEdges, onCitus: Citus.countEdges), .keys(Array(authors)), .integer(limit))
    return Dictionary(counts.map { ($0.key(0), Int($0.integer(1))) }) { first, _ in first }
  }

  /// The follower with which a transaction's share of a slice ends; nil if the rest fits.
  private func lastOfChunk(
    to author: StoreKey, keys: ClosedRange<StoreKey>, size: Int
  ) throws(StoreError) -> StoreKey? {
    try database.query(
      database.choose(Self.lastOfChunk, onCitus: Citus.lastOfChunk), .key(author), .key(keys.lowerBound),
      .key(keys.upperBound), .integer(max(1, size) - 1)
    ).first?.key(0)
  }

  private static let countEdges = """
    SELECT a.key, (SELECT count(*) FROM (SELECT 1 FROM edge WHERE kind = 0 AND subject = a.key LIMIT $2::bigint) few)
    FROM unnest($1::uuid[]) a(key)
    """

  private static let lastOfChunk = """
    SELECT actor FROM edge WHERE kind = 0 AND subject = $1::uuid AND actor BETWEEN $2::uuid AND $3::uuid
    ORDER BY actor LIMIT 1 OFFSET $4::bigint
    """
}

/// A post to bring in line with the facts: along the follow edges to its author, or only in the author's own feed.
struct PostWork: Hashable {
  let key: StoreKey
  let alongEdges: Bool
}

/// A follow edge whose follower's feed is to be brought in line with the facts.
struct FollowEdge: Hashable, Comparable {
  let actor: StoreKey
  let subject: StoreKey

  static func < (a: Self, b: Self) -> Bool { a.actor != b.actor ? a.actor < b.actor : a.subject < b.subject }
}
