import FanoutWorker
import Kafka
import Testing

@Suite("Which letters have been dealt with, and how")
struct LetterStatesTests {
  static let kinds: [LetterState] = [.redriven, .discarded, .settled]

  @Test("tells what was last said of each, in whatever order it comes, and a group keeps it", arguments: 0..<50)
  func model(seed: Int) {
    var random = Generator(state: UInt64(seed) &* 7919 &+ 1)
    var states = LetterStates()
    var model: [Int64: LetterState] = [:]
    for _ in 0..<60 {
      let start = Int64.random(in: 0..<200, using: &random)
      let range = start..<start + Int64.random(in: 0..<6, using: &random)
      let state = Self.kinds[Int.random(in: 0..<3, using: &random)]
      states.set(range, to: state)
      for offset in range { model[offset] = state }
    }
    for offset in Int64(0)..<210 { #expect(states[offset] == model[offset] ?? .open) }
    #expect(states.runs.allSatisfy { !$0.offsets.isEmpty })
    for (one, next) in zip(states.runs, states.runs.dropFirst()) {
      #expect(one.offsets.upperBound <= next.offsets.lowerBound, "sorted and apart")
      let isOne = one.offsets.upperBound == next.offsets.lowerBound && one.state == next.state
      #expect(!isOne, "what touches is one")
    }

    let low = Int64.random(in: 0..<20, using: &random)
    let (commit, losses) = states.commit(from: low)
    #expect(losses == LetterStates.Losses())
    #expect(commit.next == (low...).first { model[$0] == nil })
    let back = LetterStates(commit)
    for offset in low..<210 { #expect(back[offset] == model[offset] ?? .open) }
  }

  @Test("what there is no room for is counted, and is open or settled: never redriven or discarded if it was not")
  func noRoom() {
    var random = Generator(state: 5)
    for next in [Int64(0), 4000, 9000] {
      var states = LetterStates()
      for offset in Int64(0)..<30_000 where offset != next {
        let kind = Int.random(in: 0..<3, using: &random)
        if kind < 2 || offset < next { states.set(offset..<offset + 1, to: kind == 0 ? .redriven : .discarded) }
      }
      let (commit, losses) = states.commit(from: 0)
      #expect(commit.next == next && commit.note.utf8.count <= 4000)
      let back = LetterStates(commit)
      var found = LetterStates.Losses()
      for offset in Int64(0)..<30_000 where back[offset] != states[offset] {
        if back[offset] == .open { found.open += 1 }
        if back[offset] == .settled { found.settled += 1 }
        #expect(offset < next ? back[offset] == .settled : back[offset] == .open)
      }
      #expect(found == losses && losses.open > 0)
    }
  }

  @Test("of those before the first open one, what the latest are is kept")
  func latest() {
    var states = LetterStates()
    for offset in Int64(0)..<10_000 { states.set(offset..<offset + 1, to: offset % 2 == 0 ? .redriven : .discarded) }
    let (commit, losses) = states.commit(from: 0)
    let back = LetterStates(commit)
    #expect(losses.open == 0 && losses.settled > 5000 && losses.settled < 7000)
    #expect(back[9999] == .discarded && back[9998] == .redriven && back[0] == .settled && back[10_000] == .open)
  }

  @Test(
    "a note that is none tells nothing beyond the offset, and not what those before it are",
    arguments: [
      "", "after=", "after=x", "after=1", "after=r0", "after=r-1", "after=r+1", "after=r9223372036854775808",
      "after=9223372036854775807", "before=", "before=r1x", "before=o5", "settled 3+1", "r5", "\u{1B}[2J",
    ])
  func foreignNote(note: String) {
    let states = LetterStates(CommittedOffset(next: 5, note: note))
    #expect(states.runs == [LetterStates.Run(offsets: 0..<5, state: .settled)])
  }
}

struct Generator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
