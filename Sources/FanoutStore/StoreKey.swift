public import SocialEvents

/// The 16-byte key of a user or a post: the first 16 bytes of the SHA-256 of its id.
///
/// A digest needs no lookup, no coordination between workers and no row that has to be written first, spreads evenly, and can
/// be computed by a reader in SQL. The key of a post covers `author␟post`, joined by U+001F, which no id may hold; so a post's
/// key is never a user's. SHA-256 rather than a faster hash, since ids come from strangers who must not be able to choose two
/// with the same key.
public struct StoreKey: Hashable, Comparable, Sendable {
  /// The first eight bytes, big-endian, so that comparing numbers is comparing bytes.
  public let high: UInt64
  /// The last eight bytes, big-endian.
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  public init(_ user: UserID) { self.init(hashing: user.string) }
  public init(_ post: Post) { self.init(hashing: post.key) }

  public static func < (a: Self, b: Self) -> Bool {
    a.high != b.high ? a.high < b.high : a.low < b.low
  }

  public static let lowest = StoreKey(high: 0, low: 0)
  public static let highest = StoreKey(high: .max, low: .max)

  /// The next greater key; the highest has none and is its own.
  package var successor: StoreKey {
    if low < .max { return StoreKey(high: high, low: low + 1) }
    return high < .max ? StoreKey(high: high + 1, low: 0) : self
  }

  /// 32 lower-case hexadecimal digits.
  public var hexadecimal: String { Self.hexadecimal(high) + Self.hexadecimal(low) }

  /// The key that `hexadecimal` spells, or nil.
  public init?(hexadecimal: Substring) {
    guard hexadecimal.utf8.count == 32,
      let high = UInt64(hexadecimal.prefix(16), radix: 16), let low = UInt64(hexadecimal.suffix(16), radix: 16)
    else { return nil }
    self.init(high: high, low: low)
    // A number may have a sign and capitals, a key's spelling has not.
    if !self.hexadecimal.utf8.elementsEqual(hexadecimal.utf8) { return nil }
  }

  static func hexadecimal(_ word: UInt64) -> String {
    let digits = String(word, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
