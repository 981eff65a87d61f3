package import Kafka

/// What was done with a dead letter.
package enum LetterState: String, CaseIterable, Sendable {
  case open, redriven, discarded
  /// Redriven or discarded: there was no room to keep which.
  case settled

  /// In a note.
  fileprivate var letter: Character {
    switch self {
    case .open: "o"
    case .redriven: "r"
    case .discarded: "d"
    case .settled: "s"
    }
  }
}

/// What was done with the letters of a partition: a committed offset, before which none is open, and a note that says more.
///
/// Kafka's groups have one offset for each partition, but letters are chosen by reason or by hand. So the text that the brokers
/// keep with an offset tells their states, as runs like `r20`, or `r` for a run of one: `after=o3r20` from the offset on, and
/// `before=d5r` from the letter before it backwards. What the note leaves out is open from the offset on, and settled before
/// it. All is one commit, so that nothing comes between which letters are dealt with and how.
package struct LetterStates: Equatable, Sendable {
  package struct Run: Equatable, Sendable {
    package var offsets: Range<Int64>
    package var state: LetterState

    package init(offsets: Range<Int64>, state: LetterState) {
      self.offsets = offsets
      self.state = state
    }
  }

  /// Those that are not open: sorted, apart, and no longer to be joined.
  package private(set) var runs: [Run] = []

  /// How many offsets are something else when they are read back.
  package struct Losses: Equatable, Sendable {
    package var open: Int64 = 0
    package var settled: Int64 = 0

    package init() {}
  }

  /// What brokers keep is 4,096 bytes, unless they are set up otherwise (`offset.metadata.max.bytes`).
  static let maximumNote = 4000

  package init() {}

  package subscript(offset: Int64) -> LetterState {
    let index = firstRun(endingAfter: offset)
    return index < runs.count && runs[index].offsets.contains(offset) ? runs[index].state : .open
  }

  /// Sets the state of these, whatever it was; none becomes open again.
  package mutating func set(_ offsets: Range<Int64>, to state: LetterState) {
    if offsets.isEmpty || state == .open { return }
    var (low, high) = (offsets.lowerBound, offsets.upperBound)
    var (before, after): (Run?, Run?)
    // Those that touch it are among them, as they may become one with it.
    let first = firstRun(endingAfter: low - 1)
    var end = first
    while end < runs.count, runs[end].offsets.lowerBound <= high {
      let run = runs[end]
      if run.state == state {
        low = min(low, run.offsets.lowerBound)
        high = max(high, run.offsets.upperBound)
      } else {
        if run.offsets.lowerBound < low { before = Run(offsets: run.offsets.lowerBound..<low, state: run.state) }
        if run.offsets.upperBound > high { after = Run(offsets: high..<run.offsets.upperBound, state: run.state) }
      }
      end += 1
    }
    let new = [before, Run(offsets: low..<high, state: state), after].compactMap { $0 }
    runs.replaceSubrange(first..<end, with: new)
  }

  /// The first offset from `start` on that is open.
  package func firstOpen(from start: Int64) -> Int64 {
    var open = start
    var index = firstRun(endingAfter: start)
    while index < runs.count, runs[index].offsets.contains(open) {
      open = runs[index].offsets.upperBound
      index += 1
    }
    return open
  }

  private func firstRun(endingAfter offset: Int64) -> Int {
    var (low, high) = (0, runs.count)
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].offsets.upperBound <= offset { low = middle + 1 } else { high = middle }
    }
    return low
  }

  // MARK: What a group keeps of them

  /// Reads back what ``commit(from:)`` made. What is no such note is no reason to fail: it tells nothing.
  package init(_ commit: CommittedOffset) {
    let next = max(0, commit.next)
    set(0..<next, to: .settled)
    for word in commit.note.split(separator: " ") {
      if word.hasPrefix(Self.after), let told = Self.runs(of: word.dropFirst(Self.after.count)) {
        var start = next
        for (state, count) in told {
          let (end, isBeyond) = start.addingReportingOverflow(count)
          if isBeyond { break }
          set(start..<end, to: state)
          start = end
        }
      }
      if word.hasPrefix(Self.before), let told = Self.runs(of: word.dropFirst(Self.before.count)) {
        var end = next
        for (state, count) in told where end > 0 {
          let start = max(0, end - count)
          set(start..<end, to: state)
          end = start
        }
      }
    }
  }

  /// What a group has to commit to keep them, as far as there is room: first which are open, then what the latest are.
  /// - Parameter low: the partition's first offset; those before it need not be kept.
  package func commit(from low: Int64) -> (offset: CommittedOffset, losses: Losses) {
    let next = firstOpen(from: low)
    let index = firstRun(endingAfter: next)
    var note = Note(limit: Self.maximumNote)
    var losses = Losses()
    note.begin(Self.after)
    var end = next
    for run in runs[index...] {
      let count = Int64(run.offsets.count)
      if !note.add((.open, run.offsets.lowerBound - end), (run.state, count)) { losses.open += count }
      end = run.offsets.upperBound
    }
    note.begin(Self.before)
    for run in runs[..<index].reversed() where run.offsets.upperBound > low {
      let count = run.offsets.upperBound - max(low, run.offsets.lowerBound)
      if !note.add((run.state, count)), run.state != .settled { losses.settled += count }
    }
    return (CommittedOffset(next: next, note: note.text), losses)
  }

  private static let after = "after="
  private static let before = "before="

  /// Nil if the text is anything else.
  private static func runs(of text: Substring) -> [(LetterState, Int64)]? {
    var runs: [(LetterState, Int64)] = []
    var rest = text
    while let letter = rest.popFirst() {
      guard let state = LetterState.allCases.first(where: { $0.letter == letter }) else { return nil }
      let digits = rest.prefix { $0.isASCII && $0.isNumber }
      rest = rest.dropFirst(digits.count)
      guard let count = digits.isEmpty ? 1 : Int64(digits), count > 0 else { return nil }
      runs.append((state, count))
    }
    return runs
  }
}

/// A text of runs that grows until there is no room.
private struct Note {
  let limit: Int
  private(set) var text = ""
  /// The word that the next runs belong to, as long as it has none.
  private var word = ""
  private var isFull = false

  init(limit: Int) { self.limit = limit }

  mutating func begin(_ word: String) {
    self.word = word
    isFull = false
  }

  /// - Returns: false if there is no room, or was none before: runs follow one another.
  mutating func add(_ runs: (state: LetterState, count: Int64)...) -> Bool {
    var piece = word.isEmpty || text.isEmpty ? word : " " + word
    for (state, count) in runs where count > 0 {
      piece.append(state.letter)
      if count > 1 { piece += String(count) }
    }
    isFull = isFull || text.utf8.count + piece.utf8.count > limit
    if isFull { return false }
    text += piece
    word = ""
    return true
  }
}
