import FanoutWorker
import Kafka
import Testing

@Suite("Which letters have been dealt with")
struct OffsetSetTests {
  @Test("holds what a plain set holds, in whatever order it comes, and a group keeps it", arguments: 0..<50)
  func model(seed: Int) {
    var random = Generator(state: UInt64(seed) &* 7919 &+ 1)
    var set = OffsetSet()
    var model: Set<Int64> = []
    for _ in 0..<60 {
      let start = Int64.random(in: 0..<200, using: &random)
      let range = start..<start + Int64.random(in: 0..<6, using: &random)
      set.insert(range)
      model.formUnion(range)
    }
    #expect(set.ranges.flatMap { Array($0) } == model.sorted())
    for index in set.ranges.indices.dropFirst() {
      #expect(set.ranges[index - 1].upperBound < set.ranges[index].lowerBound, "ranges that touch are one")
    }
    for offset in Int64(0)..<210 { #expect(set.contains(offset) == model.contains(offset)) }

    let low = Int64.random(in: 0..<20, using: &random)
    let (commit, forgotten) = set.commit(from: low)
    #expect(forgotten == 0)
    #expect(commit.next == (low...).first { !model.contains($0) })
    let back = OffsetSet(commit)
    for offset in low..<210 { #expect(back.contains(offset) == model.contains(offset)) }
  }

  @Test("says what a commit has no room for, and keeps the first part")
  func tooManyGaps() {
    var set = OffsetSet()
    for offset in stride(from: Int64(10), to: 10_010, by: 2) { set.insert(offset) }
    let (commit, forgotten) = set.commit(from: 0)
    #expect(commit.next == 0)
    #expect(commit.note.utf8.count <= 4000)
    let back = OffsetSet(commit)
    #expect(back.ranges.count == 5000 - Int(forgotten))
    #expect(forgotten > 0 && forgotten < 4500)
    #expect(back.contains(10) && !back.contains(11) && !back.contains(10_008))
  }

  @Test(
    "a note that is none settles nothing beyond the offset",
    arguments: [
      "", "settled", "settled x", "settled 1", "settled 1+", "settled -1+5", "settled 1+0", "settled 0+1",
      "settled 9223372036854775807+1", "settled 1+9223372036854775807", "settled 1+1+1", "something 1+1", "\u{1B}[2J",
    ])
  func foreignNote(note: String) {
    let set = OffsetSet(CommittedOffset(next: 5, note: note))
    #expect(set.ranges == [0..<5])
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
