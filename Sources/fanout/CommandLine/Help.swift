/// The texts of `--help`.
enum Help {
  static func overview(_ commands: [Command]) -> String {
    let width = (commands.map(\.name.count).max() ?? 0) + 2
    let lines = commands.map { "  \(pad($0.name, width))\($0.summary)" }
    return """
      fanout keeps fan-out off the request path: services publish small events ("ann liked bob's photo") to Kafka, and
      fanout keeps feedback tabs, feeds and relations up to date in a store. Crash it, repeat, reorder or replay: the
      stored result is the same.

      usage: fanout COMMAND [options]

      \(lines.joined(separator: "\n"))

      Every option is also an environment variable: --store is FANOUT_STORE. `fanout COMMAND --help` tells more.
      Exit: 0 done, 1 failed, 2 wrong usage, 3 a check found differences.
      Begin with: fanout demo

      """
  }

  static func text(of command: Command) -> String {
    let operands = command.operands.isEmpty ? "" : " \(command.operands)"
    var text = "\(command.summary)\n\nusage: fanout \(command.name)\(operands) [options]\n"
    if !command.details.isEmpty { text += "\n\(command.details)\n" }
    if command.options.isEmpty { return text }
    text += "\noptions (and their variables):\n"
    for option in command.options {
      let value = option.placeholder.map { " \($0)" } ?? ""
      let standard = option.standard.map { " [\($0)]" } ?? ""
      text += "  --\(option.name)\(value)  (\(option.variable))\n      \(option.help)\(standard)\n"
    }
    return text
  }

  static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
