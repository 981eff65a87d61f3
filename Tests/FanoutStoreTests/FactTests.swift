import FanoutStore
import FanoutStoreTesting
import SocialEvents
import Testing

@Suite("Facts")
struct FactTests {
  private let edge = Edge.like(actor: UserID(unchecked: "a"), post: .sample("b", "p"))
  private let post = Post.sample("b", "p")

  private func version(_ at: Int64, _ event: String = "e") -> Version {
    Version(time: .sample(at), event: EventID(unchecked: event))
  }

  // MARK: Registers

  @Test("versions compare by time, then event id by bytes")
  func versions() {
    let ascending = [
      version(0, "z"), version(1, ""), version(1, "10"), version(1, "9"), version(1, "e\u{301}"), version(1, "é"),
      version(2, "a"),
    ]
    for (index, lesser) in ascending.enumerated() {
      #expect(!(lesser < lesser))
      for greater in ascending[(index + 1)...] {
        #expect(lesser < greater)
        #expect(!(greater < lesser))
        #expect(lesser != greater)
      }
    }
  }

  @Test("of one version absent beats silent beats present, then the greater extra")
  func edgeTies() {
    let ascending = [
      EdgeFact(edge: edge, version: version(1), isPresent: true),
      EdgeFact(edge: edge, version: version(1), isPresent: true, extra: #"{"a":1}"#),
      EdgeFact(edge: edge, version: version(1), isPresent: true, extra: #"{"a":2}"#),
      EdgeFact(edge: edge, version: version(1), isPresent: true, isSilent: true),
      EdgeFact(edge: edge, version: version(1), isPresent: true, isSilent: true, extra: "{}"),
      EdgeFact(edge: edge, version: version(1), isPresent: false),
      EdgeFact(edge: edge, version: version(1, "f"), isPresent: true),
      EdgeFact(edge: edge, version: version(2), isPresent: true),
    ]
    for (index, lesser) in ascending.enumerated() {
      #expect(!lesser.supersedes(lesser))
      for greater in ascending[(index + 1)...] {
        #expect(greater.supersedes(lesser))
        #expect(!lesser.supersedes(greater))
      }
    }
  }

  @Test("post facts merge to the same in any order, and forget nothing")
  func merging() throws {
    let facts = [
      PostFact(post: post, publication: .init(version: version(3), publishedAt: .sample(1)), isDeleted: false),
      PostFact(post: post, publication: .init(version: version(3), publishedAt: .sample(2)), isDeleted: false),
      PostFact(post: post, publication: .init(version: version(2), publishedAt: .sample(9)), isDeleted: false),
      PostFact(post: post, publication: nil, isDeleted: true),
    ]
    for a in facts.indices {
      for b in facts.indices where b != a {
        for c in facts.indices where c != a && c != b {
          let d = 6 - a - b - c
          var merged = facts[a]
          for index in [b, c, d] { merged.merge(facts[index]) }
          #expect(merged.isDeleted)
          #expect(!merged.isLive)
          #expect(merged.publication == facts[1].publication)
        }
      }
    }
  }

  // MARK: Batches

  @Test("the clock rule holds for versions, publishedAt and upTo, from five minutes and a microsecond on")
  func clockRule() throws {
    let recorded = Timestamp.sample(0)
    let edge: Int64 = 300_000_000
    for (claimed, believed) in [
      (edge - 1, edge - 1), (edge, edge), (edge + 1, 0), (4_000_000_000_000_000, 0), (-5, -5),
    ] {
      var batch = FactBatch()
      batch.append(.follow("a", "b", at: claimed), recorded: recorded)
      batch.append(.published("b", "p", at: -9, publishedAt: claimed), recorded: recorded)
      batch.append(.published("b", "default", at: claimed), recorded: recorded)
      batch.append(.seen("a", upTo: claimed, at: -9), recorded: recorded)
      #expect(batch.edges[0].version.time == .sample(believed))
      #expect(batch.posts[0].publication?.version.time == .sample(-9))
      #expect(batch.posts[0].publication?.publishedAt == .sample(believed))
      #expect(batch.posts[1].publication?.version.time == .sample(believed))
      #expect(batch.posts[1].publication?.publishedAt == .sample(believed))
      #expect(batch.seen[0].upTo == .sample(believed))
    }
  }

  @Test("a record without a timestamp is believed")
  func noRecordTimestamp() {
    var batch = FactBatch()
    batch.append(.follow("a", "b", at: 4_000_000_000_000_000), recorded: nil)
    #expect(batch.edges[0].version.time == .sample(4_000_000_000_000_000))
  }

  @Test("reducing leaves the winner of each register, in the order of the keys")
  func reducing() {
    let events: [Event] = [
      .follow("a", "b", at: 2), .unfollow("a", "b", at: 1), .follow("a", "c", at: 1), .unfollow("a", "c", at: 3),
      .like("a", "b", "p", at: 1), .favorite("a", "b", "p", at: 1), .like("a", "b", "p", at: 1, silent: true),
      .published("b", "p", at: 1), .deleted("b", "p"), .published("b", "p", at: 2, publishedAt: 7),
      .published("b", "q", at: 1), .seen("a", upTo: 3), .seen("b", upTo: 1), .seen("a", upTo: 2), .seen("a", upTo: 4),
    ]
    var generator = SeededGenerator(seed: 1)
    for _ in 0..<50 {
      var batch = FactBatch()
      for event in events.shuffled(using: &generator) { batch.append(event, recorded: nil) }
      batch.reduce()
      #expect(batch.eventCount == events.count)
      #expect(batch.edges.count == 4)
      #expect(batch.edges.filter(\.isPresent).map(\.edge.kind) == [.follow, .like, .favorite])
      #expect(batch.edges.first { $0.edge.kind == .like }?.isSilent == true)
      #expect(batch.edges.map(\.edge.kind) == [.follow, .follow, .like, .favorite])
      #expect(batch.edges[0].subjectKey < batch.edges[1].subjectKey)
      #expect(batch.posts.map(\.isDeleted).sorted { $0 && !$1 } == [true, false])
      #expect(batch.posts.first(where: \.isDeleted)?.publication?.publishedAt == .sample(7))
      #expect(batch.posts[0].key < batch.posts[1].key)
      #expect(batch.seen.map(\.key) == batch.seen.map(\.key).sorted())
      #expect(Set(batch.seen.map(\.upTo)) == [.sample(4), .sample(1)])
    }
  }

  @Test("a batch can be emptied and used again")
  func emptying() {
    var batch = FactBatch()
    #expect(batch.isEmpty)
    batch.reduce()
    #expect(batch.isEmpty)
    for event in [Event.follow("a", "b", at: 1), .published("b", "p", at: 1), .seen("a", upTo: 1)] {
      batch.append(event, recorded: nil)
    }
    batch.reduce()
    #expect(!batch.isEmpty)
    batch.removeAll()
    #expect(batch.isEmpty)
    #expect(batch.edges.isEmpty && batch.posts.isEmpty && batch.seen.isEmpty)
  }
}
