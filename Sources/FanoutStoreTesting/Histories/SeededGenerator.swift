/// SplitMix64: the same numbers for the same seed, on every machine and in every version.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  public init(seed: UInt64) {
    state = seed
  }

  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }

  /// True in `percent` of a hundred calls.
  mutating func chance(_ percent: Int) -> Bool { number(100) < percent }

  /// A number from 0 and below `bound`.
  ///
  /// Not `Int.random(in:using:)`: how that uses the generator is not promised, and a seed should mean the same history for ever.
  mutating func number(_ bound: Int) -> Int { Int(next() >> 33) % bound }

  mutating func pick<T>(_ list: [T]) -> T { list[number(list.count)] }

  mutating func shuffled<T>(_ list: [T]) -> [T] {
    var list = list
    for index in list.indices.dropFirst() { list.swapAt(index, number(index + 1)) }
    return list
  }
}
