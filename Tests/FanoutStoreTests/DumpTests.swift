import FanoutStore
import FanoutStoreTesting
import SocialEvents
import Testing

@Suite("Canonical dump")
struct DumpTests {
  @Test("lines are sorted by bytes, in memory and in runs of any size", arguments: [1, 2, 10, 100, 1 << 20])
  func sorting(runSize: Int) throws {
    var generator = SeededGenerator(seed: UInt64(runSize))
    let lines: [[UInt8]] = (0..<500).map { _ in
      (0..<Int.random(in: 0...5, using: &generator)).map { _ in
        [0, 1, 10, 97, 128, 255].randomElement(using: &generator) ?? 0
      }
    }
    var sorter = LineSorter(runSize: runSize)
    for line in lines { try sorter.add(line) }
    var sorted: [[UInt8]] = []
    try sorter.forEachSorted { sorted.append(Array($0)) }
    #expect(sorted == lines.sorted { $0.lexicographicallyPrecedes($1) })
  }

  @Test("no lines, and an error thrown by the reader")
  func sortingEdges() throws {
    try LineSorter(runSize: 1).forEachSorted { _ in Issue.record("there is a line") }
    struct Enough: Error {}
    var sorter = LineSorter(runSize: 1)
    for line in ["b", "a"] { try sorter.add(Array(line.utf8)) }
    let filled = sorter
    do {
      try filled.forEachSorted { _ in throw Enough() }
      Issue.record("the error was lost")
    } catch is Enough {}
  }

  private func line(_ row: ViewRow) -> String {
    var bytes: [UInt8] = []
    row.appendCanonicalLine(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test("rows are written as SPEC 9 shows them")
  func rows() throws {
    let a = UserID(unchecked: "a")
    let b = UserID(unchecked: "b")
    let post = Post.sample("b", "p")
    let follow = try Edge.follow(actor: a, target: b)
    let like = Edge.like(actor: a, post: post)
    func entry(_ edge: Edge, extra: String? = nil, seenUpTo: Timestamp? = nil) -> FeedbackEntry {
      let version = Version(time: .sample(0), event: EventID(unchecked: "e/1"))
      return FeedbackEntry(EdgeFact(edge: edge, version: version, isPresent: true, extra: extra), seenUpTo: seenUpTo)
    }
    #expect(line(.edge(follow)) == #"{"view":"edge","kind":"follow","actor":"a","target":"b"}"#)
    #expect(line(.edge(like)) == #"{"view":"edge","kind":"like","actor":"a","author":"b","post":"p"}"#)
    #expect(
      line(.edge(.favorite(actor: a, post: post)))
        == #"{"view":"edge","kind":"favorite","actor":"a","author":"b","post":"p"}"#)
    #expect(
      line(.feed(of: a, FeedItem(publishedAt: .sample(0), post: post)))
        == #"{"view":"feed","user":"a","author":"b","post":"p","publishedAt":1785000000000000}"#)
    #expect(
      line(.feedback(of: b, entry(like, seenUpTo: .sample(-1))))
        == #"{"view":"feedback","user":"b","type":"like","from":"a","author":"b","post":"p","#
        + #""time":1785000000000000,"event":"e/1","seen":false}"#)
    #expect(
      line(.feedback(of: b, entry(follow, extra: #"{ "x":"\/" }"#, seenUpTo: .sample(0))))
        == #"{"view":"feedback","user":"b","type":"follow","from":"a","#
        + #""time":1785000000000000,"event":"e/1","seen":true,"extra":{ "x":"\/" }}"#)
  }

  @Test("ids are escaped as JSON requires, and no further")
  func escaping() throws {
    let edge = try Edge.follow(actor: UserID(unchecked: #"é"/\ "#), target: UserID(unchecked: "e\u{301}😀\u{2028}'<"))
    #expect(
      Array(line(.edge(edge)).utf8)
        == Array(
          (#"{"view":"edge","kind":"follow","actor":"é\"/\\ ","target":""# + "e\u{301}😀\u{2028}'<" + #""}"#).utf8))
  }

  @Test("digests are of the lines, in whole and by view")
  func digests() throws {
    let store = MemoryStore(settings: StoreSettings(feedLimit: 10, includesOwnPosts: true))
    let none = try CanonicalDump(of: store).digest()
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    #expect([none.whole, none.edges, none.feeds, none.feedback] == [empty, empty, empty, empty])
    #expect(none.lines == Digest.Lines())

    _ = store.commitFacts(
      Scenario.batch([.follow("a", "b", at: 1), .like("a", "b", "p", at: 2), .published("b", "p", at: 3)]))
    let lines = try DumpLines.of(store)
    let digest = try CanonicalDump(of: store).digest()
    func hash(_ view: String) -> String {
      var hash = SHA256()
      for line in lines.map({ String(decoding: $0, as: UTF8.self) }) where line.hasPrefix(#"{"view":""# + view) {
        hash.update(line + "\n")
      }
      return hexadecimal(hash.finish())
    }
    #expect(digest.whole == hash(""))
    #expect(digest.edges == hash("edge\""))
    #expect(digest.feeds == hash("feed\""))
    #expect(digest.feedback == hash("feedback\""))
    #expect((digest.lines.edges, digest.lines.feeds, digest.lines.feedback) == (2, 2, 2))
  }
}
