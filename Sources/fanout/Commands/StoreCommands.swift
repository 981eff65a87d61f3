internal import FanoutStore

extension Option {
  static let dryRun = Option.flag("dry-run", "only print the SQL that would be run (PostgreSQL)")
  static let distribute = Option.flag("distribute", "distribute the tables over the nodes of a Citus cluster, too")
}

extension Command {
  static let dump = Command(
    name: "dump",
    summary: "print all views as sorted lines of JSON",
    details: "The canonical dump: two stores hold the same views exactly if their dumps are equal.",
    options: [.store, .feedLimit, .ownPosts]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let output = Output()
    try CanonicalDump(of: try arguments.openStore(.readOnly)).forEachLine { output.line($0) }
    return .done
  }

  static let digest = Command(
    name: "digest",
    summary: "print the SHA-256 of the dump, and one for each view",
    options: [.store, .feedLimit, .ownPosts, .json]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let digest = try CanonicalDump(of: try arguments.openStore(.readOnly)).digest()
    let rows = [
      ("all", digest.whole, digest.lines.edges + digest.lines.feeds + digest.lines.feedback),
      ("edges", digest.edges, digest.lines.edges), ("feeds", digest.feeds, digest.lines.feeds),
      ("feedback", digest.feedback, digest.lines.feedback),
    ]
    let output = Output()
    for (view, sum, lines) in rows {
      if try arguments.flag(.json) {
        output.line(JSONLine().member("view", view).member("sha256", sum).member("lines", lines).closed)
      } else {
        output.line("\(sum)  \(Help.pad(view, 8))  \(lines) lines")
      }
    }
    return .done
  }

  static let migrate = Command(
    name: "migrate",
    summary: "make the store, or bring its schema to this version",
    details: "Repeating it does nothing. A worker makes a store that does not exist yet by itself.",
    options: [.store, .feedLimit, .ownPosts, .dryRun, .distribute]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let address = try arguments.storeAddress()
    let name = address.name
    let settings = try arguments.settings() ?? .standard
    let distributes = try arguments.flag(.distribute)
    if try arguments.flag(.dryRun) {
      let sql = try address.migrationSQL(settings: settings, distributing: distributes)
      Output().line(sql.isEmpty ? "-- \(name) has the newest schema already" : sql)
      return .done
    }
    let (from, to) = try address.migrate(settings: settings, distributing: distributes)
    // Opening it says whether it is set up as asked.
    _ = try arguments.openStore(.readOnly)
    let output = Output()
    switch from {
    case to: output.line("\(name) has schema version \(to) already")
    case 0: output.line("made \(name) with schema version \(to)")
    default: output.line("\(name): schema version \(from) is now \(to)")
    }
    if distributes { output.line("its tables are distributed over the nodes of the Citus cluster") }
    return .done
  }
}
