/// How a command ended (SPEC 8).
enum ExitCode: Int32, Sendable {
  case done = 0
  case failed = 1
  case wrongUsage = 2
  case foundDifferences = 3
}

/// The user's mistake: what was wrong and what to do.
struct UsageError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// Something that could not be done: what and why.
struct CommandFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// A command of the program: `fanout NAME …`.
struct Command: Sendable {
  /// One or two words.
  let name: String
  /// What follows the name, besides options.
  var operands = ""
  /// One line for the list of commands.
  let summary: String
  /// Further paragraphs for the command's own help.
  var details = ""
  let options: [Option]
  let run: @Sendable (Arguments) throws -> ExitCode
}
