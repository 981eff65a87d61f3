private import Glibc
internal import Kafka

@main
enum Program {
  static func main() {
    exit(run(CommandLine.arguments.dropFirst()).rawValue)
  }

  private static func run(_ words: ArraySlice<String>) -> ExitCode {
    do {
      let help: Set<String> = ["--help", "-h", "help"]
      guard let first = words.first else {
        note(Help.overview(Command.all))
        return .wrongUsage
      }
      if help.contains(first), words.count == 1 {
        Output().line(Help.overview(Command.all))
        return .done
      }
      let asked = help.contains(first) ? words.dropFirst() : words
      guard let (command, rest) = find(asked) else {
        let longer = Command.all.map(\.name).filter { $0.hasPrefix(first + " ") }
        let hint = longer.isEmpty ? "See: fanout --help" : "There is: \(longer.joined(separator: ", "))"
        throw UsageError("there is no command \"\(first)\". \(hint)")
      }
      if help.contains(first) || rest.contains("--help") || rest.contains("-h") {
        Output().line(Help.text(of: command))
        return .done
      }
      let arguments = try Arguments(rest, for: command)
      arguments.warnOfVisibleSecrets()
      return try command.run(arguments)
    } catch let error as UsageError {
      complain(error.description)
      return .wrongUsage
    } catch {
      let isTopicMissing = (error as? KafkaError)?.isUnknownTopic ?? false
      complain("\(error)" + (isTopicMissing ? ". To make all topics, run: fanout topics create" : ""))
      return .failed
    }
  }

  /// The command that the words begin with, and the words after it. A name of two words is found before one of one.
  private static func find(_ words: ArraySlice<String>) -> (Command, ArraySlice<String>)? {
    for count in [2, 1] where words.count >= count {
      let name = words.prefix(count).joined(separator: " ")
      if let command = Command.all.first(where: { $0.name == name }) { return (command, words.dropFirst(count)) }
    }
    return nil
  }
}
