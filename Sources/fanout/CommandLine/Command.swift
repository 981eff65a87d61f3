/// How a command ended (SPEC 8).
package enum ExitCode: Int32, Sendable {
  case done = 0
  case failed = 1
  case wrongUsage = 2
  case foundDifferences = 3
}

/// The user's mistake: what was wrong and what to do.
package struct UsageError: Error, CustomStringConvertible {
  package let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// Something that could not be done: what and why.
package struct CommandFailure: Error, CustomStringConvertible {
  package let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// A command of the program: `fanout NAME …`.
package struct Command: Sendable {
  /// One or two words.
  package let name: String
  /// What follows the name, besides options.
  var operands = ""
  /// One line for the list of commands.
  let summary: String
  /// Further paragraphs for the command's own help.
  var details = ""
  package let options: [Option]
  let run: @Sendable (Arguments) throws -> ExitCode
}
