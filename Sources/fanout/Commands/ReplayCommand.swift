internal import FanoutWorker
private import Glibc
internal import SocialEvents

extension Option {
  static let topics = Option(
    name: "topics", placeholder: "A,B,…", help: "the topics to replay (all that hold events, if not given)")
  static let fromTime = Option(
    name: "from", placeholder: "TIME",
    help: "from where: beginning, or a time such as 2026-07-25T10:00:00Z (the records' own timestamps)",
    standard: "beginning")
  // Not `group`: where FANOUT_GROUP is set for workers, a replay would commit in their group, and they would pass over
  // records.
  static let replayGroup = Option(
    name: "replay-group", placeholder: "NAME",
    help: "its own consumer group is fanout-replay-NAME, never the workers' (a new name, if not given)")
}

extension Command {
  static let replay = Command(
    name: "replay",
    summary: "apply topics again, from the beginning or a time",
    details: """
      Reads what is there when it begins, and ends. It has a consumer group of its own and never moves the workers' offsets.
      Into the store in use it changes nothing; into an empty one it rebuilds everything. Large fan-outs are done by the
      replay itself.
      """,
    options: [
      .store, .brokers, .kafka, .kafkaFile, .kafkaPasswordFile, .topicPrefix, .topics, .fromTime, .replayGroup,
      .feedLimit,
      .ownPosts, .sliceSize,
      .maxInFlight, .writers, .logLevel,
    ]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let log = try arguments.log()
    // A prefix of its own keeps it apart from the workers' group, whatever the name.
    let name = arguments.optional(.replayGroup) ?? "\(microsecondsSince1970() / 1000)-\(getpid())"
    let group = "fanout-replay-" + name
    let topics = try arguments.topics()
    let configuration = try arguments.workerConfiguration(kafka: try arguments.kafka(log: log), group: group)
    let known = topics.events + [topics.tasks]
    let names = arguments.optional(.topics)?.split(separator: ",").map(String.init) ?? topics.events
    if names.isEmpty { throw UsageError("--topics names no topic; choose from \(known.joined(separator: ","))") }
    for name in names where !known.contains(name) {
      throw UsageError("--topics: \(name) holds no events or tasks; choose from \(known.joined(separator: ","))")
    }
    let replay = Replay(
      configuration, topicNames: names, from: try start(arguments), store: try arguments.openStore(.readWrite), log: log
    )
    Signals.ignoreBrokenPipes()
    Signals.onTermination { replay.stop() }
    let last = try replay.run { progress in
      let share = progress.total > 0 ? Double(progress.done) / Double(progress.total) * 100 : 100
      let remaining =
        progress.done < progress.total ? progress.remainingSeconds.map { ", \(fixed($0, 0)) s left" } : nil
      note(
        "replayed \(grouped(Int(progress.done))) of \(grouped(Int(progress.total))) offsets (\(fixed(share, 0)) %), "
          + "\(grouped(progress.rate))/s\(remaining ?? "")")
    }
    Output().line(
      "replayed \(last.counts.events) events in \(fixed(last.seconds, 1)) s: \(last.counts.changes) changes, "
        + "\(last.counts.deliveries) deliveries, \(last.counts.deadLetters) invalid")
    guard last.done >= last.total else {
      throw CommandFailure("stopped before the end; begin again to replay the rest as well")
    }
    return .done
  }

  private static func start(_ arguments: Arguments) throws -> Replay.Start {
    let text = try arguments.string(.fromTime)
    if text == "beginning" { return .beginning }
    do throws(InvalidEvent) {
      return .time(milliseconds: try Timestamp(rfc3339: text).microseconds / 1000)
    } catch {
      throw UsageError(
        "--from must be beginning or a time such as 2026-07-25T10:00:00Z, not \"\(text)\": \(error.detail)")
    }
  }
}
