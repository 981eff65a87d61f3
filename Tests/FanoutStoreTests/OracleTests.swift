import FanoutStore
import FanoutStoreTesting
import SocialEvents
import Testing

/// What judges the stores is judged by hand here.
@Suite("Oracle and generator")
struct OracleTests {
  private func lines(
    _ events: [Event], recorded: Timestamp? = nil, feedLimit: Int = 1000, ownPosts: Bool = false
  ) -> [String] {
    let settings = StoreSettings(feedLimit: feedLimit, includesOwnPosts: ownPosts)
    return Oracle(events.map { Record($0, recorded: recorded) }, settings: settings).lines()
      .map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("the example of SPEC 9")
  func example() {
    let shown = lines([
      .follow("a", "b", at: 0, id: "1"), .like("a", "b", "p", at: 0, id: "2"), .published("b", "p", at: 0, id: "3"),
    ])
    #expect(
      shown == [
        #"{"view":"edge","kind":"follow","actor":"a","target":"b"}"#,
        #"{"view":"edge","kind":"like","actor":"a","author":"b","post":"p"}"#,
        #"{"view":"feed","user":"a","author":"b","post":"p","publishedAt":1785000000000000}"#,
        #"{"view":"feedback","user":"b","type":"follow","from":"a","time":1785000000000000,"event":"1","seen":false}"#,
        #"{"view":"feedback","user":"b","type":"like","from":"a","author":"b","post":"p","time":1785000000000000,"#
          + #""event":"2","seen":false}"#,
      ])
  }

  @Test("undone, deleted, silent and own edges, seen, extra and quotes")
  func views() {
    let shown = lines([
      .follow("a", "b", at: 0), .unfollow("a", "b", at: 0, id: "f"), .like("a", "b", "gone", at: 0),
      .deleted("b", "gone"),
      .like("b", "b", "p", at: 0), .favorite("c", "b", "p", at: 0, silent: true),
      .like(#"q"\"#, "b", "p", at: 1, extra: "{ }"), .like("c", "b", "p", at: 2), .seen("b", upTo: 1),
      .seen("b", upTo: 0),
    ])
    #expect(
      shown == [
        #"{"view":"edge","kind":"favorite","actor":"c","author":"b","post":"p"}"#,
        #"{"view":"edge","kind":"like","actor":"b","author":"b","post":"p"}"#,
        #"{"view":"edge","kind":"like","actor":"c","author":"b","post":"p"}"#,
        #"{"view":"edge","kind":"like","actor":"q\"\\","author":"b","post":"p"}"#,
        #"{"view":"feedback","user":"b","type":"like","from":"c","author":"b","post":"p","time":1785000000000002,"#
          + #""event":"e","seen":false}"#,
        #"{"view":"feedback","user":"b","type":"like","from":"q\"\\","author":"b","post":"p","time":1785000000000001,"#
          + #""event":"e","seen":true,"extra":{ }}"#,
      ])
  }

  @Test("feeds: limit, order of ties, own posts")
  func feeds() {
    let events: [Event] = [
      .follow("a", "b", at: 0), .follow("a", "b!", at: 0), .published("b", "z", at: 0), .published("b!", "a", at: 0),
      .published("b", "zz", at: 0), .published("a", "mine", at: 0, publishedAt: 1),
      .published("b", "old", at: 9, publishedAt: -1),
    ]
    func feed(of user: String, _ limit: Int, _ ownPosts: Bool) -> [String] {
      lines(events, feedLimit: limit, ownPosts: ownPosts).filter { $0.hasPrefix(#"{"view":"feed","user":"\#(user)""#) }
        .map { String($0.dropFirst(34).prefix { $0 != "}" }) }
    }
    #expect(feed(of: "a", 4, false).count == 4)
    #expect(feed(of: "a", 3, false).contains { $0.contains("old") } == false)
    #expect(feed(of: "a", 1, false).allSatisfy { $0.contains("b!") })
    #expect(feed(of: "a", 2, false).contains { $0.contains(#""zz""#) })
    #expect(feed(of: "a", 1, true).allSatisfy { $0.contains("mine") })
    #expect(feed(of: "b", 9, true).count == 3)
    #expect(feed(of: "b", 9, false).isEmpty)
  }

  @Test("the clock rule, at its edge")
  func clockRule() {
    let tolerated = lines([.follow("a", "b", at: 300_000_000)], recorded: .sample(0))
    #expect(tolerated.last?.contains(#""time":1785000300000000"#) == true)
    let refused = lines([.follow("a", "b", at: 300_000_001)], recorded: .sample(0))
    #expect(refused.last?.contains(#""time":1785000000000000"#) == true)
    let seen = lines([.seen("b", upTo: 300_000_001), .follow("a", "b", at: 1)], recorded: .sample(0))
    #expect(seen.last?.contains(#""seen":false"#) == true)
    let published = lines(
      [.follow("a", "b", at: 0), .published("b", "p", at: 0, publishedAt: 300_000_001)], recorded: .sample(0))
    #expect(published.contains { $0.contains(#""publishedAt":1785000000000000"#) })
  }

  @Test("a seed is always the same history, and another seed another")
  func determinism() {
    var one = HistoryGenerator(seed: 1)
    var again = HistoryGenerator(seed: 1)
    var other = HistoryGenerator(seed: 2)
    let history = one.history()
    #expect(history.records == again.history().records)
    #expect(history.records != other.history().records)
  }

  @Test("the generator makes everything that it says")
  func coverage() {
    var types: [EventType: Int] = [:]
    var sharedIDs = 0
    var repeats = 0
    var disbelieved = 0
    var ownLikes = 0
    var silent = 0
    var extra = 0
    var deletedFirst = 0
    for seed in UInt64(1)...300 {
      var generator = HistoryGenerator(seed: seed)
      let records = generator.history().records
      var contents: [EventID: Set<Event>] = [:]
      var deleted: Set<Post> = []
      for record in records {
        let event = record.event
        types[event.type, default: 0] += 1
        contents[event.id, default: []].insert(event)
        if event.time.believed(recorded: record.recorded) != event.time { disbelieved += 1 }
        switch event.assertion {
        case .present(let edge, let isSilent, let text):
          if edge.actor == edge.recipient { ownLikes += 1 }
          if isSilent { silent += 1 }
          if text != nil { extra += 1 }
        case .deleted(let post): deleted.insert(post)
        case .published(let post, _): if deleted.contains(post) { deletedFirst += 1 }
        default: break
        }
      }
      sharedIDs += contents.values.count { $0.count > 1 }
      repeats += records.count - Set(records).count
    }
    for type in EventType.allCases { #expect(types[type, default: 0] > 100, "\(type)") }
    for count in [sharedIDs, repeats, disbelieved, ownLikes, silent, extra, deletedFirst] { #expect(count > 100) }
  }
}
