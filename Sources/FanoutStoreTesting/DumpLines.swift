public import FanoutStore

/// The lines of canonical dumps (SPEC 9), as bytes: two spellings of "é" are one string to Swift, but two users here.
public enum DumpLines {
  /// All lines of a store's dump.
  public static func of(_ store: any Store) throws -> [[UInt8]] {
    var lines: [[UInt8]] = []
    try CanonicalDump(of: store).forEachLine { lines.append(Array($0)) }
    return lines
  }

  /// What is in one list and not in the other, a line each, or nil if they are equal.
  public static func difference(_ actual: [[UInt8]], from expected: [[UInt8]]) -> String? {
    if actual == expected { return nil }
    let known = Set(expected)
    let shown = Set(actual)
    var text = expected.filter { !shown.contains($0) }.map { "missing: " + String(decoding: $0, as: UTF8.self) }
    text += actual.filter { !known.contains($0) }.map { "too much: " + String(decoding: $0, as: UTF8.self) }
    // Equal sets: the order differs, or a line comes twice.
    if text.isEmpty { text = ["the same lines in another order or number: \(actual.count) and not \(expected.count)"] }
    return text.joined(separator: "\n")
  }
}
