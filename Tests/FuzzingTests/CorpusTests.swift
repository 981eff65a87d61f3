import Foundation
import Testing

/// What the fuzzers of `Deploy/fuzz.sh` begin with, and what once broke something.
@Suite("The fuzzers' corpus")
struct CorpusTests {
  struct Input: Sendable, CustomTestStringConvertible {
    let target: FuzzTarget
    let name: String
    let bytes: [UInt8]
    var testDescription: String { "\(target)/\(name)" }
  }

  /// A folder for each target.
  static let inputs: [Input] = FuzzTarget.allCases.flatMap { target in
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus/\(target)")
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []
    return names.sorted().compactMap { name in
      (try? Data(contentsOf: folder.appending(path: name))).map {
        Input(target: target, name: name, bytes: Array($0))
      }
    }
  }

  @Test("each target has some")
  func isComplete() {
    #expect(Set(Self.inputs.map(\.target)).count == FuzzTarget.allCases.count)
  }

  @Test("keeps all promises", arguments: inputs)
  func keepsPromises(_ input: Input) throws {
    try input.target.check(input.bytes)
  }
}
