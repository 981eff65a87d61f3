import FanoutStore
import FanoutStoreTesting
import SocialEvents
import Testing

@Suite("Keys")
struct KeyTests {
  @Test(
    "a key is the first half of the SHA-256 of the id",
    arguments: [
      ("abc", "ba7816bf8f01cfea414140de5dae2223"),
      (String(repeating: "x", count: 128), "24da1b81d0b16df6428eee73c69fcb2a"),
      ("é", "4a99557e4033c3539de2eb65472017ca"),
      ("e\u{301}", "bf12767b0f2a56b2190075bae8169f65"),
    ])
  func users(id: String, key: String) {
    #expect(StoreKey(UserID(unchecked: id)).hexadecimal == key)
  }

  @Test("a post's key covers author and post, joined by U+001F")
  func posts() {
    #expect(StoreKey(Post.sample("b", "p")).hexadecimal == "c67a7e2ff8cd9c9534ed83cc2951d0c9")
    #expect(StoreKey(Post.sample("ab", "c")) != StoreKey(Post.sample("a", "bc")))
  }

  @Test("SHA-256 of bytes in pieces")
  func digests() {
    #expect(
      hexadecimal(SHA256().finish()) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    var pieces = SHA256()
    pieces.update("a")
    pieces.update("")
    pieces.update("bc")
    #expect(
      hexadecimal(pieces.finish()) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }

  @Test("keys are ordered as their bytes are, have successors, and are read back")
  func order() {
    let ascending = [
      StoreKey.lowest, StoreKey(high: 0, low: 1), StoreKey(high: 0, low: .max), StoreKey(high: 1, low: 0),
      StoreKey(high: 1 << 63, low: 5), .highest,
    ]
    for (lesser, greater) in zip(ascending, ascending.dropFirst()) {
      #expect(lesser < greater)
      #expect(lesser.hexadecimal < greater.hexadecimal)
      #expect(lesser.successor <= greater)
      #expect(lesser < lesser.successor)
    }
    #expect(StoreKey(high: 0, low: .max).successor == StoreKey(high: 1, low: 0))
    #expect(StoreKey.highest.successor == .highest)
    for key in ascending { #expect(StoreKey(hexadecimal: key.hexadecimal[...]) == key) }
    for wrong in ["", "00", String(repeating: "g", count: 32), String(repeating: "0", count: 33)] {
      #expect(StoreKey(hexadecimal: wrong[...]) == nil)
    }
  }

  @Test("a feedback id is its position, and sorts as positions do")
  func feedbackIDs() {
    let key = StoreKey(UserID(unchecked: "a"))
    let ascending = [
      FeedbackPosition(time: Timestamp(microseconds: 0), kind: .favorite, actor: .highest, subject: .highest),
      FeedbackPosition(time: .sample(0), kind: .follow, actor: key, subject: .highest),
      FeedbackPosition(time: .sample(0), kind: .like, actor: .lowest, subject: .lowest),
      FeedbackPosition(time: .sample(0), kind: .like, actor: .lowest, subject: key),
      FeedbackPosition(time: .sample(0), kind: .like, actor: key, subject: .lowest),
      FeedbackPosition(time: .sample(1), kind: .follow, actor: .lowest, subject: .lowest),
    ]
    for (lesser, greater) in zip(ascending, ascending.dropFirst()) {
      #expect(lesser < greater)
      #expect(lesser.id < greater.id)
    }
    for position in ascending { #expect(FeedbackPosition(id: position.id) == position) }
    for wrong in [
      "", "-", "0-0-0-0", ascending[1].id + "0", ascending[1].id + "-", "+" + ascending[1].id.dropFirst(),
      ascending[1].id.uppercased(), ascending[1].id.replacing("-0-", with: "-+0-"),
    ] {
      #expect(FeedbackPosition(id: wrong) == nil)
    }
  }

  // MARK: Slices

  @Test("the slices of a post cover every key once", arguments: [0, 1, 2, 7, 100, 4999, 5000, 5001, 123_456])
  func coverage(edgeCount: Int) throws {
    let post = Post.sample("b", "p")
    for sliceSize in [0, 1, 3, 100, 5000] where edgeCount / max(1, sliceSize) <= 5001 {
      let slices = FanoutSlice.slices(of: post, edgeCount: edgeCount, sliceSize: sliceSize)
      #expect(slices.first?.keys.lowerBound == .lowest)
      #expect(slices.last?.keys.upperBound == .highest)
      for (slice, next) in zip(slices, slices.dropFirst()) {
        #expect(slice.keys.upperBound.successor == next.keys.lowerBound)
      }
      // Filled to four fifths at most, so that few hold more than a slice.
      #expect(slices.count * max(1, sliceSize) * 4 >= edgeCount * 5)
    }
  }

  @Test("a slice is refused unless it is one of a power of two")
  func sliceRanges() {
    let post = Post.sample("b", "p")
    for (index, count) in [(0, 0), (0, 3), (1, 1), (-1, 2), (2, 2), (0, -2), (0, 1 << 33), (0, .max), (.min, 1)] {
      #expect(FanoutSlice(post: post, index: index, count: count) == nil)
    }
    #expect(FanoutSlice(post: post, index: 0, count: 1)?.keys == .lowest ... .highest)
    let last = FanoutSlice(post: post, index: 1 << 32 - 1, count: 1 << 32)?.keys
    #expect(last == StoreKey(high: 0xFFFF_FFFF_0000_0000, low: 0) ... .highest)
  }
}
