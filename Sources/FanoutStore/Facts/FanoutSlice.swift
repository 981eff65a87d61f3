public import SocialEvents

/// A part of a large fan-out: one post, and the followers of its author whose keys lie in one range (SPEC 6, "Slices").
///
/// A slice does not say whether to deliver or to retract. It says "bring these followers' feeds in line with what the facts
/// say of this post now", so a slice that comes late, twice or after a deletion does no harm.
public struct FanoutSlice: Hashable, Sendable {
  public let post: Post
  /// Which of `count` equal ranges of the key space, from 0.
  public let index: Int
  /// Into how many ranges the key space is cut: a power of two.
  public let count: Int

  /// Nil unless `count` is a power of two up to 2^32 and `index` one of its ranges.
  public init?(post: Post, index: Int, count: Int) {
    guard count >= 1, count <= 1 << 32, count & (count - 1) == 0, index >= 0, index < count else { return nil }
    self.post = post
    self.index = index
    self.count = count
  }

  /// The follower keys that the slice covers. Keys are digests, so equal ranges hold about equally many.
  public var keys: ClosedRange<StoreKey> {
    let bits = UInt64(count.trailingZeroBitCount)
    if bits == 0 { return .lowest ... .highest }
    let low = UInt64(index) << (64 - bits)
    return StoreKey(high: low, low: 0)...StoreKey(high: low | (UInt64.max >> bits), low: .max)
  }

  /// The slices of a post whose author has `edgeCount` follow edges, each of `sliceSize` edges or a little less.
  ///
  /// How many there are depends only on the magnitude of the follower count, so a delivery and a retraction that are not long
  /// apart have the same ranges and so the same keys.
  public static func slices(of post: Post, edgeCount: Int, sliceSize: Int) -> [FanoutSlice] {
    // Ranges filled to four fifths on average seldom hold more than a slice; one that does is written in two transactions.
    let filled = max(1, sliceSize) * 4
    let wanted = max(1, (edgeCount * 5 + filled - 1) / filled)
    var count = 1
    while count < wanted, count < 1 << 32 { count <<= 1 }
    return (0..<count).compactMap { FanoutSlice(post: post, index: $0, count: count) }
  }
}
