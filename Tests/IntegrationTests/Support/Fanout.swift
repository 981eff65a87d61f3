import Foundation

/// The built command.
enum Fanout {
  /// `FANOUT_TEST_BINARY`, or the `fanout` beside the test runner.
  static let binary = ProcessInfo.processInfo.environment["FANOUT_TEST_BINARY"] ?? products + "/fanout"

  /// The folder of all that was built, the test runner included.
  static let products =
    URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().path

  /// Nothing of the tests' own environment that could turn into an option.
  static let environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("FANOUT_") }

  /// Starts a command and leaves it running.
  static func start(
    _ arguments: [String], environment: [String: String] = [:], input: String = "/dev/null", in folder: TestFolder
  ) throws -> ChildProcess {
    try ChildProcess(
      binary, arguments, environment: Self.environment.merging(environment) { $1 }, input: input, in: folder)
  }

  /// What a command that has ended left behind.
  struct Result {
    let status: Int32
    let output: String
    let error: String

    var lines: [Substring] { output.split(separator: "\n") }
  }

  /// Runs a command to its end.
  /// - Parameter status: how it must end; nil if any end will do.
  static func run(
    _ arguments: [String], environment: [String: String] = [:], input: String = "/dev/null", in folder: TestFolder,
    expecting status: Int32? = 0
  ) async throws -> Result {
    let process = try start(arguments, environment: environment, input: input, in: folder)
    let actual = try await process.end()
    if let status, actual != status {
      throw TestFailure("expected status \(status), got \(actual): \(process.report)")
    }
    return Result(status: actual, output: process.standardOutput, error: process.standardError)
  }
}
