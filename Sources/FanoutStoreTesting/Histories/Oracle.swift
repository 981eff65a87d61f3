public import FanoutStore
internal import SocialEvents

/// What a store must show after a set of records: SPEC 2, 4, 5 and 9 once more, by brute force.
///
/// It is written from the SPEC and shares no code with the facts, the stores or the dump, so that a mistake there is not
/// repeated here. All ids are compared as bytes.
public struct Oracle {
  typealias Bytes = [UInt8]

  struct PostName: Hashable {
    var author: Bytes
    var post: Bytes
  }
  struct EdgeName: Hashable {
    var kind: String
    var actor: Bytes
    var recipient: Bytes
    var post: Bytes?
  }
  /// One event's word about an edge.
  struct Claim {
    enum Word: Int {
      case present = 0
      case silent, absent
    }
    var time: Int64
    var event: Bytes
    var word: Word
    var extra: Bytes?
  }
  struct Publication {
    var time: Int64
    var event: Bytes
    var publishedAt: Int64
  }

  private let settings: StoreSettings
  private var claims: [EdgeName: [Claim]] = [:]
  private var publications: [PostName: [Publication]] = [:]
  private var deleted: Set<PostName> = []
  private var seen: [Bytes: [Int64]] = [:]

  public init(_ records: [Record], settings: StoreSettings) {
    self.settings = settings
    for record in records { take(record) }
  }

  private mutating func take(_ record: Record) {
    let recorded = record.recorded?.microseconds
    let time = honest(record.event.time.microseconds, recorded)
    let event = Bytes(record.event.id.string.utf8)
    switch record.event.assertion {
    case .present(let edge, let silent, let extra):
      claims[name(edge), default: []].append(
        Claim(time: time, event: event, word: silent ? .silent : .present, extra: extra.map { Bytes($0.utf8) }))
    case .absent(let edge):
      claims[name(edge), default: []].append(Claim(time: time, event: event, word: .absent, extra: nil))
    case .published(let post, let publishedAt):
      let at = honest((publishedAt ?? record.event.time).microseconds, recorded)
      publications[name(post), default: []].append(Publication(time: time, event: event, publishedAt: at))
    case .deleted(let post):
      deleted.insert(name(post))
    case .seen(let user, let upTo):
      seen[Bytes(user.string.utf8), default: []].append(honest(upTo.microseconds, recorded))
    }
  }

  /// SPEC 2: a time more than five minutes after the record's is replaced by the record's.
  private func honest(_ time: Int64, _ recorded: Int64?) -> Int64 {
    guard let recorded else { return time }
    return time - recorded > 5 * 60 * 1_000_000 ? recorded : time
  }

  private func name(_ post: Post) -> PostName {
    PostName(author: Bytes(post.author.string.utf8), post: Bytes(post.id.string.utf8))
  }

  private func name(_ edge: Edge) -> EdgeName {
    let kind =
      switch edge.kind {
      case .follow: "follow"
      case .like: "like"
      case .favorite: "favorite"
      }
    return EdgeName(
      kind: kind, actor: Bytes(edge.actor.string.utf8), recipient: Bytes(edge.recipient.string.utf8),
      post: edge.post.map { Bytes($0.string.utf8) })
  }

  // MARK: Facts

  private func isGreater(_ a: Bytes, _ b: Bytes) -> Bool {
    for (x, y) in zip(a, b) where x != y { return x > y }
    return a.count > b.count
  }

  /// The claim that no other beats: later time, then greater id, then absent over silent over present, then greater extra.
  private func winner(_ edge: EdgeName) -> Claim? {
    func beats(_ a: Claim, _ b: Claim) -> Bool {
      if a.time != b.time { return a.time > b.time }
      if a.event != b.event { return isGreater(a.event, b.event) }
      if a.word != b.word { return a.word.rawValue > b.word.rawValue }
      return isGreater(a.extra ?? [], b.extra ?? [])
    }
    let all = claims[edge] ?? []
    return all.first { claim in !all.contains { beats($0, claim) } }
  }

  /// The winning claim of an edge that readers see.
  private func shown(_ edge: EdgeName) -> Claim? {
    guard let claim = winner(edge), claim.word != .absent else { return nil }
    if let post = edge.post, deleted.contains(PostName(author: edge.recipient, post: post)) { return nil }
    return claim
  }

  private func publishedAt(_ post: PostName) -> Int64? {
    func beats(_ a: Publication, _ b: Publication) -> Bool {
      if a.time != b.time { return a.time > b.time }
      if a.event != b.event { return isGreater(a.event, b.event) }
      return a.publishedAt > b.publishedAt
    }
    if deleted.contains(post) { return nil }
    let all = publications[post] ?? []
    return all.first { publication in !all.contains { beats($0, publication) } }?.publishedAt
  }

  private func follows(_ user: Bytes, _ author: Bytes) -> Bool {
    shown(EdgeName(kind: "follow", actor: user, recipient: author, post: nil)) != nil
  }

  private func belongs(_ post: PostName, inFeedOf user: Bytes) -> Bool {
    user == post.author ? settings.includesOwnPosts : follows(user, post.author)
  }

  // MARK: Views

  /// The lines of the canonical dump (SPEC 9), sorted, without line feeds.
  public func lines() -> [[UInt8]] {
    var lines: [Bytes] = []
    var users = Set(publications.keys.map(\.author))
    for edge in claims.keys {
      users.insert(edge.actor)
      guard let claim = shown(edge) else { continue }
      lines.append(line(edge))
      if claim.word == .present && edge.actor != edge.recipient { lines.append(line(edge, claim)) }
    }
    for user in users {
      let items = publications.keys.compactMap { post -> (at: Int64, post: PostName)? in
        guard belongs(post, inFeedOf: user), let at = publishedAt(post) else { return nil }
        return (at, post)
      }
      let newestFirst = items.sorted { a, b in
        if a.at != b.at { return a.at > b.at }
        if a.post.author != b.post.author { return isGreater(a.post.author, b.post.author) }
        return isGreater(a.post.post, b.post.post)
      }
      for item in newestFirst.prefix(settings.feedLimit) { lines.append(line(user, item.post, item.at)) }
    }
    return lines.sorted { isGreater($1, $0) }
  }

  /// Whether a reader may be shown the row while views are still being derived: its post is not deleted, its edge present.
  public func mayShow(_ row: ViewRow) -> Bool {
    switch row {
    case .edge(let edge): shown(name(edge)) != nil
    case .feed(let user, let item):
      publishedAt(name(item.post)) != nil && belongs(name(item.post), inFeedOf: Bytes(user.string.utf8))
    case .feedback(_, let entry): shown(name(entry.edge))?.word == .present
    }
  }

  // MARK: Lines

  private func line(_ edge: EdgeName) -> Bytes {
    var members = [("view", text("edge")), ("kind", text(edge.kind)), ("actor", text(edge.actor))]
    if let post = edge.post {
      members += [("author", text(edge.recipient)), ("post", text(post))]
    } else {
      members += [("target", text(edge.recipient))]
    }
    return object(members)
  }

  private func line(_ user: Bytes, _ post: PostName, _ at: Int64) -> Bytes {
    object([
      ("view", text("feed")), ("user", text(user)), ("author", text(post.author)), ("post", text(post.post)),
      ("publishedAt", Bytes("\(at)".utf8)),
    ])
  }

  private func line(_ edge: EdgeName, _ claim: Claim) -> Bytes {
    let upTo = seen[edge.recipient]?.max()
    var members = [
      ("view", text("feedback")), ("user", text(edge.recipient)), ("type", text(edge.kind)), ("from", text(edge.actor)),
    ]
    if let post = edge.post { members += [("author", text(edge.recipient)), ("post", text(post))] }
    members += [
      ("time", Bytes("\(claim.time)".utf8)), ("event", text(claim.event)),
      ("seen", Bytes(upTo != nil && claim.time <= upTo! ? "true".utf8 : "false".utf8)),
    ]
    // One object a line: a line break between the tokens of `extra` has to become a space.
    if let extra = claim.extra { members += [("extra", extra.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 })] }
    return object(members)
  }

  private func object(_ members: [(String, Bytes)]) -> Bytes {
    var bytes = Bytes("{".utf8)
    for (index, (name, value)) in members.enumerated() {
      bytes += Bytes((index == 0 ? "" : ",").utf8) + text(name) + Bytes(":".utf8) + value
    }
    return bytes + Bytes("}".utf8)
  }

  private func text(_ string: String) -> Bytes { text(Bytes(string.utf8)) }

  /// Ids hold no control characters (SPEC 1), so two characters are all that JSON wants escaped.
  private func text(_ bytes: Bytes) -> Bytes {
    let escaped = bytes.flatMap {
      $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") ? [UInt8(ascii: "\\"), $0] : [$0]
    }
    return [UInt8(ascii: "\"")] + escaped + [UInt8(ascii: "\"")]
  }
}
