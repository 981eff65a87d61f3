import SocialEvents
import Testing

struct KeyTests {
  @Test("a record's key is the identity of what its event asserts (SPEC 3)")
  func keys() throws {
    let (a, b) = (try UserID("a"), try UserID("b"))
    let post = Post(author: b, id: try PostID("p"))
    let follow = try Edge.follow(actor: a, target: b)
    #expect(Assertion.present(follow, silent: false, extra: nil).key == "a\u{1F}b")
    #expect(Assertion.absent(follow).key == "a\u{1F}b")
    #expect(Assertion.present(.like(actor: a, post: post), silent: true, extra: "{}").key == "a\u{1F}b\u{1F}p")
    #expect(Assertion.absent(.favorite(actor: a, post: post)).key == "a\u{1F}b\u{1F}p")
    #expect(Assertion.published(post, publishedAt: nil).key == "b\u{1F}p")
    #expect(Assertion.deleted(post).key == "b\u{1F}p")
    #expect(Assertion.seen(a, upTo: Timestamp(microseconds: 1)).key == "a")
  }

  @Test("no id can hold the separator, so two identities never share a key")
  func separator() {
    #expect(reason { () throws(InvalidEvent) in try UserID("a\u{1F}b") } == .invalidIdentifier)
  }

  @Test(
    "every type has its topic (SPEC 3)",
    arguments: zip(
      EventType.allCases,
      [
        "social.follows", "social.follows", "social.likes", "social.likes", "social.favorites", "social.favorites",
        "social.posts", "social.posts", "social.seen",
      ]))
  func topics(_ type: EventType, _ topic: String) {
    #expect(Topics().name(of: type.family) == topic)
  }
}
