import Foundation
import SocialEvents
import Testing

struct FuzzTests {
  /// `FANOUT_FUZZ_ITERATIONS` mutants, starting with the one of `FANOUT_FUZZ_SEED`.
  private static let iterations = number("FANOUT_FUZZ_ITERATIONS") ?? 24_000
  private static let firstSeed = number("FANOUT_FUZZ_SEED") ?? 1
  private static let tasks: UInt64 = 2

  private static func number(_ variable: String) -> UInt64? {
    ProcessInfo.processInfo.environment[variable].flatMap { UInt64($0) }
  }

  @Test("damaged events get the same verdict as from Foundation, and crash nothing", arguments: 0..<tasks)
  func agree(task: UInt64) {
    let texts = Corpus.files.map(\.bytes)
    var accepted = 0
    var disagreements = 0
    for seed in stride(from: Self.firstSeed + task, to: Self.firstSeed + Self.iterations, by: Int(Self.tasks)) {
      var mutator = Mutator(seed: seed)
      // Valid files make the more interesting mutants.
      var index = Int.random(in: 0..<texts.count, using: &mutator.generator)
      if !Corpus.files[index].isValid { index = Int.random(in: 0..<texts.count, using: &mutator.generator) }
      let mutant = mutator.mutant(of: texts, index: index)
      let verdicts = Verdicts(mutant, type: Corpus.files[index].type)
      if InvalidEvent.Reason(rawValue: verdicts.decoder) == nil { accepted += 1 }
      if verdicts.agree { continue }
      disagreements += 1
      Issue.record(
        """
        FANOUT_FUZZ_SEED=\(seed) FANOUT_FUZZ_ITERATIONS=1: a mutant of \(Corpus.files[index].name)
        decoder:   \(verdicts.decoder)
        reference: \(verdicts.reference)
        bytes (base64): \(Data(mutant).base64EncodedString())
        """)
      if disagreements == 10 { return }
    }
    // A mutator that only makes garbage would prove nothing.
    if Self.iterations > 1000 { #expect(accepted > Int(Self.iterations / Self.tasks) / 20) }
  }
}
