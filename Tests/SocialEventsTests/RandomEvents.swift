import SocialEvents

/// Makes valid events of every type, plain ones and ones with everything that the rules allow.
struct RandomEvents {
  var generator: SeededGenerator

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  mutating func event() throws -> Event {
    let traceparents: [String?] = [nil, nil, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]
    return Event(
      id: try EventID(text()), source: text(), time: time(), assertion: try assertion(),
      traceparent: pick(traceparents))
  }

  mutating func assertion() throws -> Assertion {
    switch Int.random(in: 0..<5, using: &generator) {
    case 0: .present(try edge(), silent: Bool.random(using: &generator), extra: pick(extras))
    case 1: .absent(try edge())
    case 2: .published(try post(), publishedAt: Bool.random(using: &generator) ? time() : nil)
    case 3: .deleted(try post())
    default: .seen(try UserID(text()), upTo: time())
    }
  }

  private let extras: [String?] = [
    nil, "{}", #"{"caption":"Räder \/ \u0041 😀","n":-1.5e+300,"a":[true,false,null,{}]}"#, "{ \t\"a\" : 1 }",
    "{\"long\":\"\(String(repeating: "x", count: 4085))\"}",
  ]

  private mutating func edge() throws -> Edge {
    let kind = pick(EdgeKind.allCases)
    let actor = try UserID("actor " + text().prefix(20))
    switch kind {
    case .follow: return try Edge.follow(actor: actor, target: UserID(text()))
    case .like: return try Edge.like(actor: actor, post: post())
    case .favorite: return try Edge.favorite(actor: actor, post: post())
    }
  }

  private mutating func post() throws -> Post { Post(author: try UserID(text()), id: try PostID(text())) }

  private mutating func time() -> Timestamp {
    // Any time that RFC 3339 can spell, and more often one near these days.
    let limit: Int64 = Bool.random(using: &generator) ? 253_402_300_799_999_999 : 2_000_000_000_000_000
    return Timestamp(microseconds: Int64.random(in: 0...limit, using: &generator))
  }

  /// 1 to 128 bytes without control characters, never only white space.
  mutating func text() -> String {
    let alphabets: [[String]] = [
      ["a", "b", "7", "-", "_"], ["\"", "\\", "/", "x", " ", "'"],
      ["é", "e\u{301}", "ß", "中", "😀", "\u{2028}", "\u{FEFF}"],
    ]
    let alphabet = pick(alphabets)
    var text = pick(["u", "0", "é", "\\"])
    for _ in 0..<Int.random(in: 0..<pick([4, 16, 60]), using: &generator) {
      let next = pick(alphabet)
      if text.utf8.count + next.utf8.count <= 128 { text += next }
    }
    return text
  }

  private mutating func pick<T>(_ choices: [T]) -> T {
    choices[Int.random(in: 0..<choices.count, using: &generator)]
  }
}
