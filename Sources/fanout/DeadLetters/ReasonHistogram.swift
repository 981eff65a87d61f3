internal import FanoutWorker

/// How many letters there are of each reason.
struct ReasonHistogram: CustomStringConvertible {
  private var counts: [String: Int] = [:]
  private(set) var total = 0

  /// Reasons are data from the network, and may be as many as there are letters.
  private static let mostReasons = 200

  mutating func count(_ reason: String) {
    total += 1
    counts[counts.count < Self.mostReasons || counts[reason] != nil ? reason : "other", default: 0] += 1
  }

  /// The most frequent first.
  var sorted: [(reason: String, count: Int)] {
    counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { ($0.key, $0.value) }
  }

  /// On one line.
  var description: String {
    sorted.map { "\(grouped($0.count)) \(SafeText.line($0.reason))" }.joined(separator: ", ")
  }

  /// A line for each, with a bar.
  var bars: [String] {
    let longest = sorted.first?.count ?? 1
    return ListPrinter.aligned(
      sorted.map { reason, count in
        [SafeText.line(reason), grouped(count), String(repeating: "█", count: max(1, count * 40 / longest))]
      })
  }
}
