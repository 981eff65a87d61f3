/// When a store that writes feeds out looks whether one has outgrown its limit (SPEC 5): one rule for all of them.
extension StoreSettings {
  /// A random one of the equal cells into which key space is cut.
  ///
  /// A delivery has its feed looked at if the owner's key lies in the cell drawn for the post. So each delivery is followed by a
  /// look with a probability of eight in `feedLimit`, without counting rows per feed, and a feed that outgrows twice the
  /// limit is trimmed after another eighth of the limit on average.
  package func sampledCell() -> ClosedRange<StoreKey> {
    let cells = UInt64(max(1, feedLimit / 8))
    let width = UInt64.max / cells
    let cell = UInt64.random(in: 0..<cells)
    let high = cell == cells - 1 ? UInt64.max : (cell + 1) * width - 1
    return StoreKey(high: cell * width, low: 0)...StoreKey(high: high, low: .max)
  }
}
