package import Kafka

/// Which offsets of a partition have been dealt with: a committed offset, before which all are, and a note of those after it.
///
/// Kafka's groups have one offset for each partition, but letters are chosen by reason or by hand. So those beyond the first
/// that is open go into the text that the brokers keep with an offset, as pairs of a gap and a length: `3+1 5+20`.
package struct OffsetSet: Equatable, Sendable {
  /// Sorted, with a gap between any two.
  package private(set) var ranges: [Range<Int64>] = []

  /// What brokers keep is 4,096 bytes, unless they are set up otherwise (`offset.metadata.max.bytes`).
  static let maximumNote = 4000
  private static let noteHead = "settled"

  package init() {}

  /// Reads back what ``commit(from:)`` made. What is no such note is no reason to fail: it settles nothing.
  package init(_ commit: CommittedOffset) {
    if commit.next > 0 { insert(0..<commit.next) }
    let words = commit.note.split(separator: " ")
    guard words.first == Self.noteHead[...] else { return }
    var end = commit.next
    for word in words.dropFirst() {
      let numbers = word.split(separator: "+", omittingEmptySubsequences: false).map { Int64($0) }
      guard numbers.count == 2, let gap = numbers[0], let length = numbers[1], gap > 0, length > 0 else { return }
      let (start, isBeyond) = end.addingReportingOverflow(gap)
      let (next, isFarther) = start.addingReportingOverflow(length)
      if isBeyond || isFarther { return }
      insert(start..<next)
      end = next
    }
  }

  package mutating func insert(_ new: Range<Int64>) {
    if new.isEmpty { return }
    // Ranges that touch the new one become one with it. Offsets mostly come in order, so the search begins at the end.
    var first = ranges.endIndex
    while first > 0, ranges[first - 1].upperBound >= new.lowerBound { first -= 1 }
    var end = first
    var (low, high) = (new.lowerBound, new.upperBound)
    while end < ranges.endIndex, ranges[end].lowerBound <= high {
      low = min(low, ranges[end].lowerBound)
      high = max(high, ranges[end].upperBound)
      end += 1
    }
    ranges.replaceSubrange(first..<end, with: CollectionOfOne(low..<high))
  }

  package mutating func insert(_ offset: Int64) { insert(offset..<offset + 1) }

  mutating func formUnion(_ other: OffsetSet) {
    for range in other.ranges { insert(range) }
  }

  package func contains(_ offset: Int64) -> Bool { end(ofRangeAt: offset) != nil }

  /// The first offset from `start` on that is not in the set.
  package func firstMissing(from start: Int64) -> Int64 { end(ofRangeAt: start) ?? start }

  private func end(ofRangeAt offset: Int64) -> Int64? {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].upperBound <= offset { low = middle + 1 } else { high = middle }
    }
    return low < ranges.count && ranges[low].lowerBound <= offset ? ranges[low].upperBound : nil
  }

  /// What a group has to commit to keep the set.
  /// - Parameter low: the partition's first offset; those before it need not be kept.
  /// - Returns: with it, how many offsets did not fit in: the last ones, which will count as open.
  package func commit(from low: Int64) -> (offset: CommittedOffset, forgotten: Int64) {
    let next = firstMissing(from: low)
    var note = ""
    var end = next
    var forgotten: Int64 = 0
    for range in ranges where range.lowerBound > next {
      let word = " \(range.lowerBound - end)+\(range.upperBound - range.lowerBound)"
      if forgotten > 0 || Self.noteHead.utf8.count + note.utf8.count + word.utf8.count > Self.maximumNote {
        forgotten += range.upperBound - range.lowerBound
        continue
      }
      note += word
      end = range.upperBound
    }
    return (CommittedOffset(next: next, note: note.isEmpty ? "" : Self.noteHead + note), forgotten)
  }
}
