/// Runs statements by psql, as one would by hand.
enum Psql {
  static func isInstalled(_ context: BenchContext) -> Bool {
    let version = try? ChildProcess(["psql", "--version"], output: context.newPath("out")).finish()
    return version?.exitCode == 0
  }

  /// Runs an INSERT.
  /// - Returns: its time as psql's `\timing` gives it, from sending the text to having the answer; and the number of rows.
  static func insert(
    _ statement: String, _ schema: BenchSchema, _ context: BenchContext
  ) throws -> (seconds: Double, rows: Int) {
    let script = context.newPath("sql")
    try context.write("SET synchronous_commit = on;\n\\timing on\n\(statement);\n", to: script)
    // -X: nobody's psqlrc. LC_ALL: the words below.
    let psql = try ChildProcess(
      ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-f", script, schema.address], environment: ["LC_ALL=C"],
      output: context.newPath("out"))
    let ending = try psql.finish()
    guard ending.exitCode == 0, let time = number(after: "Time: ", in: ending.output), let milliseconds = Double(time),
      let rows = number(after: "INSERT 0 ", in: ending.output).flatMap(Int.init)
    else { throw CommandFailure("psql failed: \(ending.output.prefix(2000))") }
    return (milliseconds / 1000, rows)
  }

  private static func number(after words: String, in text: String) -> String? {
    let parts = text.split(separator: words, omittingEmptySubsequences: false)
    return parts.count == 2 ? String(parts[1].prefix { $0.isNumber || $0 == "." }) : nil
  }
}
