import Foundation
import Testing

@Suite("The command line (SPEC 8)", .crowded)
struct CommandLineTests {
  /// Each command with some of its options.
  static let commands: [(name: String, options: [String])] = [
    ("demo", ["log-level"]), ("dev", ["broker-only", "partitions", "store", "topic-prefix"]),
    ("topics create", ["partitions", "replication-factor", "compact", "brokers"]),
    ("topics check", ["brokers", "json"]),
    ("emit", ["brokers", "kafka", "topic-prefix"]),
    ("worker", ["store", "group", "slice-size", "max-in-flight", "until-caught-up", "grace-period", "feed-limit"]),
    ("replay", ["store", "from", "topics", "replay-group"]), ("show", ["limit", "after", "json", "store"]),
    ("dump", ["store"]), ("digest", ["store", "json"]), ("lag", ["group", "json"]),
    ("migrate", ["feed-limit", "own-posts", "distribute"]),
    ("dead-letters list", ["reason", "topic", "from-time", "to-time", "settled", "histogram", "limit", "json"]),
    ("dead-letters show", ["full", "json"]),
    ("dead-letters redrive", ["reason", "topic", "from-time", "to-time", "all", "max-redrives", "rate", "dry-run"]),
    ("dead-letters discard", ["reason", "topic", "from-time", "to-time", "all", "yes", "dry-run"]),
  ]

  @Test("--help exits 0 and names every option and its variable", arguments: commands.indices)
  func help(index: Int) async throws {
    let (name, options) = Self.commands[index]
    let folder = try TestFolder()
    let words = name.split(separator: " ").map(String.init)
    let result = try await Fanout.run(words + ["--help"], in: folder)
    #expect(result.error == "")
    #expect(result.output.contains("usage: fanout \(name)"))
    for option in options {
      #expect(result.output.contains("--\(option)"))
      let variable = "FANOUT_" + option.uppercased().replacingOccurrences(of: "-", with: "_")
      #expect(result.output.contains(variable), "\(result.output)")
    }
    #expect(try await Fanout.run(["help"] + words, in: folder).output == result.output)
    #expect(try await Fanout.run(["--help"], in: folder).output.contains("  \(name)"), "the overview lists it")
  }

  @Test(
    "wrong usage exits 2 and says what to do",
    arguments: [
      (["frobnicate"], "fanout --help"), (["worker", "--frobnicate"], "fanout worker --help"),
      (["worker", "-x"], "fanout worker --help"), (["worker", "--store"], "--store STORE"),
      (["worker", "--store", "mysql:x"], "sqlite:PATH"), (["worker", "--slice-size", "0"], "from 1 to"),
      (["worker", "--slice-size", "many"], "whole number"), (["worker", "--kafka", "nonsense"], "NAME=VALUE"),
      (["worker", "--log-level", "loud"], "debug, info"),
      (["worker", "--until-caught-up=perhaps"], "--until-caught-up"),
      (["worker", "extra"], "one word too many"), (["show", "nothing", "ann"], "followers"),
      (["show", "feed"], "usage"),
      (["show", "likers", "ann"], "AUTHOR POST"), (["replay", "--from", "yesterday"], "beginning or a time"),
      (["migrate", "--own-posts", "maybe"], "on or off"), (["dead-letters"], "dead-letters redrive"),
      (["dead-letters", "list", "--reason", ","], "--reason"), (["dead-letters", "list", "3:17"], "one word too many"),
      (["dead-letters", "list", "--topic", "payments"], "social.likes"),
      (["dead-letters", "list", "--from-time", "yesterday"], "2026-07-25T10:00:00Z"),
      (["dead-letters", "show"], "usage"), (["dead-letters", "show", "17"], "such as 3:17"),
      (["dead-letters", "redrive"], "--all"), (["dead-letters", "redrive", "3:17", "--all"], "not several"),
      (["dead-letters", "redrive", "--all", "--reason", "refused"], "not several"),
      (["dead-letters", "redrive", "--all", "--rate", "0"], "from 1 to"),
      (["dead-letters", "discard", "--all"], "--yes"), ([], "usage: fanout COMMAND"),
      (["migrate", "--distribute"], "PostgreSQL with Citus"),
    ])
  func wrongUsage(words: [String], remedy: String) async throws {
    let folder = try TestFolder()
    let result = try await Fanout.run(words, in: folder, expecting: 2)
    #expect(result.output == "")
    #expect(result.error.contains(remedy), "\(result.error)")
  }

  @Test("a Kafka property that doesn't exist is named")
  func unknownProperty() async throws {
    let folder = try TestFolder()
    let result = try await Fanout.run(
      ["emit", "--kafka", "no.such.property=1"], in: folder, expecting: nil)
    #expect(result.status == 1 || result.status == 2)
    #expect(result.error.contains("no.such.property"), "\(result.error)")
  }

  @Test("output that can't be written is a failure, not an end cut short in silence")
  func fullDisk() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Fanout.binary)
    process.arguments = ["--help"]
    process.standardOutput = FileHandle(forWritingAtPath: "/dev/full")
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 1)
  }

  @Test("a Kafka property that would pass over events is refused", arguments: ["latest", "error"])
  func offsetReset(value: String) async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let result = try await deployment.run(
      ["worker", "--until-caught-up", "--kafka", "auto.offset.reset=\(value)"], expecting: 1)
    #expect(result.error.contains("auto.offset.reset"), "\(result.error)")
  }

  @Test("options may be given as variables, and the command line wins")
  func variables() async throws {
    let folder = try TestFolder()
    let (one, other) = (folder.file("one.db"), folder.file("other.db"))
    let variables = ["FANOUT_STORE": "sqlite:\(one)", "FANOUT_FEED_LIMIT": "7", "FANOUT_OWN_POSTS": "off"]
    try await #expect(Fanout.run(["migrate"], environment: variables, in: folder).output.contains(one))
    // The store says what it was made for.
    let mismatch = try await Fanout.run(
      ["digest", "--store", "sqlite:\(one)", "--feed-limit", "8"], in: folder, expecting: 1)
    #expect(mismatch.error.contains("feed limit 7, own posts off"), "\(mismatch.error)")
    try await #expect(
      Fanout.run(["migrate", "--store=sqlite:\(other)"], environment: variables, in: folder).output.contains(other))
    let wrong = try await Fanout.run(["migrate"], environment: ["FANOUT_FEED_LIMIT": "none"], in: folder, expecting: 2)
    #expect(wrong.error.contains("--feed-limit"))
  }

  @Test("demo shows that a replay changes nothing, and leaves nothing behind")
  func demo() async throws {
    let folder = try TestFolder()
    let result = try await Fanout.run(["demo"], environment: ["TMPDIR": folder.path], in: folder)
    #expect(result.output.contains("Nothing changed."), "\(result.output)")
    #expect(result.error == "")
    let left = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("fanout-") }
    #expect(left.isEmpty)
  }

  @Test("dev takes an emitted event, shows it, and stops on SIGINT with status 0")
  func dev() async throws {
    let folder = try TestFolder()
    let store = "sqlite:" + folder.file("dev.db")
    let dev = try Fanout.start(["dev", "--store", store], in: folder)
    try await eventually("it has told how to use it", else: dev.report) {
      dev.standardOutput.contains("fanout show followers bob")
    }
    let brokers = dev.standardOutput.split(separator: "\n").first { $0.hasPrefix("brokers=") }?.dropFirst(8)
    let path = try folder.write("events.ndjson", Lines.follow("ann", "bob", id: "1") + "\n")
    _ = try await Fanout.run(["emit", path, "--brokers", String(try #require(brokers))], in: folder)
    try await eventually("ann is a follower of bob", else: dev.report) {
      try await Fanout.run(["show", "followers", "bob", "--store", store], in: folder).output == "ann\n"
    }
    dev.signal(SIGINT)
    #expect(try await dev.end() == 0, "\(dev.report)")
  }

  @Test(
    "a secret that was mistyped is not repeated",
    arguments: ["sasl.password:TOPSECRET", "sasl.passwordTOPSECRET", "TOPSECRET"])
  func mistypedSecret(property: String) async throws {
    let result = try await Fanout.run(["lag", "--kafka", property], in: TestFolder(), expecting: 2)
    #expect(result.error.contains("--kafka takes NAME=VALUE"), "\(result.error)")
    #expect(!(result.output + result.error).contains("TOPSECRET"), "\(result.error)")
  }
}
