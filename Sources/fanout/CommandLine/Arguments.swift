private import Glibc

/// The options and operands that a command was given, from the command line and the environment.
package struct Arguments: Sendable {
  private var values: [String: [String]] = [:]
  package private(set) var operands: [String] = []
  /// The options among the arguments; the others come from variables.
  private var visible: Set<String> = []
  private let command: Command

  /// - Parameter variables: the environment.
  /// - Throws: `UsageError` that names the option at fault.
  package init(
    _ words: ArraySlice<String>, for command: Command, variables: (String) -> String? = Arguments.variable
  ) throws {
    self.command = command
    let known = Dictionary(command.options.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
    var rest = words
    var onlyOperands = false
    while let word = rest.popFirst() {
      guard !onlyOperands, word.hasPrefix("--") else {
        if !onlyOperands, word.hasPrefix("-"), word != "-" {
          throw UsageError("unknown option \(word). Options begin with two dashes; see: fanout \(command.name) --help")
        }
        operands.append(word)
        continue
      }
      if word == "--" {
        onlyOperands = true
        continue
      }
      let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
        String.init)
      guard let option = known[parts[0]] else {
        throw UsageError("unknown option --\(parts[0]). See: fanout \(command.name) --help")
      }
      let value: String
      if option.placeholder == nil {
        value = parts.count > 1 ? parts[1] : "true"
      } else if parts.count > 1 {
        value = parts[1]
      } else if let next = rest.popFirst() {
        value = next
      } else {
        throw UsageError("--\(option.name) needs a value: --\(option.name) \(option.placeholder ?? "")")
      }
      if option.isRepeatable {
        values[option.name, default: []].append(value)
      } else {
        values[option.name] = [value]
      }
    }
    visible = Set(values.keys)
    for option in command.options where values[option.name] == nil {
      guard let text = variables(option.variable), !text.isEmpty else { continue }
      values[option.name] = option.isRepeatable ? text.split(separator: ";").map(String.init) : [text]
    }
  }

  package static func variable(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }

  package func optional(_ option: Option) -> String? { values[option.name]?.last ?? option.standard }
  package func all(_ option: Option) -> [String] { values[option.name] ?? [] }

  /// The values of an option that stand among the arguments, where every user of the machine can read them.
  func visible(_ option: Option) -> [String] { visible.contains(option.name) ? all(option) : [] }

  package func string(_ option: Option) throws -> String {
    guard let value = optional(option) else {
      throw UsageError("--\(option.name) is missing (or \(option.variable)). See: fanout \(command.name) --help")
    }
    return value
  }

  package func flag(_ option: Option) throws -> Bool {
    switch optional(option) {
    case nil, "false", "0", "off", "no": return false
    case "true", "1", "on", "yes": return true
    case let other?: throw UsageError("--\(option.name) is either given or not; \"\(other)\" is neither true nor false")
    }
  }

  package func number(_ option: Option, in range: ClosedRange<Int>) throws -> Int {
    guard let number = try optionalNumber(option, in: range) else {
      throw UsageError("--\(option.name) is missing (or \(option.variable))")
    }
    return number
  }

  package func optionalNumber(_ option: Option, in range: ClosedRange<Int>) throws -> Int? {
    guard let text = optional(option) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      let bounds =
        range.upperBound == .max ? "of at least \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
      throw UsageError("--\(option.name) must be a whole number \(bounds), not \"\(text)\"")
    }
    return number
  }

  /// - Throws: `UsageError` if there are more or fewer operands than `counts`.
  func expectOperands(_ counts: ClosedRange<Int>) throws {
    if operands.count < counts.lowerBound {
      throw UsageError("usage: fanout \(command.name) \(command.operands)")
    }
    if operands.count > counts.upperBound {
      throw UsageError(
        "\"\(operands[counts.upperBound])\" is one word too many. Usage: fanout \(command.name) \(command.operands)")
    }
  }
}
