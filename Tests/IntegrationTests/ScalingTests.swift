import Foundation
import Testing

@Suite("Deploy/SCALING.md")
struct ScalingTests {
  @Test("prints what its formulas give")
  func formulas() async throws {
    let tests = URL(filePath: #filePath).deletingLastPathComponent()
    let text = try String(contentsOf: tests.appending(path: "../../Deploy/SCALING.md"), encoding: .utf8)
    let program = try #require(Self.block(after: "```python\n", in: text[...]))
    // Behind the line that ends the program.
    let rest = text[program.endIndex...].dropFirst(4)
    let printed = try #require(Self.block(after: "```\n", in: rest))
    let folder = try TestFolder()
    let python = try ChildProcess(
      "/usr/bin/env", ["python3", try folder.write("scaling.py", String(program))], environment: Fanout.environment,
      in: folder)
    #expect(try await python.end() == 0)
    #expect(python.standardOutput == printed)
    #expect(printed.split(separator: "\n").count > 5)
  }

  /// What stands between a line that begins a block and the line that ends it.
  private static func block(after opening: String, in text: Substring) -> Substring? {
    guard let start = text.range(of: opening), let end = text[start.upperBound...].range(of: "```\n") else {
      return nil
    }
    return text[start.upperBound..<end.lowerBound]
  }
}
