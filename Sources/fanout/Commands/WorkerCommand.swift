internal import FanoutWorker

extension Option {
  static let untilCaughtUp = Option.flag(
    "until-caught-up", "end once all that is in the topics now has been applied, tasks included")
  static let gracePeriod = Option(
    name: "grace-period", placeholder: "SECONDS", help: "how long a stop may take before the work at hand is given up",
    standard: "25")
  static let batchAge = Option(
    name: "batch-age", placeholder: "MS", help: "how long a batch waits for more records", standard: "5")
}

extension Command {
  static let worker = Command(
    name: "worker",
    summary: "apply events to the store, until stopped",
    details: """
      SIGTERM or SIGINT: finishes the batch at hand, commits, leaves the group, and exits 0. Another, a second or
      more later, ends it at once.
      Start as many as there are partitions; they share the work.
      """,
    options: [
      .store, .brokers, .kafka, .topicPrefix, .group, .feedLimit, .ownPosts, .sliceSize, .maxInFlight, .writers,
      .batchAge, .untilCaughtUp, .gracePeriod, .logLevel,
    ]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let log = try arguments.log()
    var configuration = try arguments.workerConfiguration(
      kafka: try arguments.kafka(log: log), group: try arguments.string(.group))
    configuration.untilCaughtUp = try arguments.flag(.untilCaughtUp)
    configuration.gracePeriod = try arguments.number(.gracePeriod, in: 1...3600) * 1000
    configuration.batchAge = try arguments.number(.batchAge, in: 0...60_000)
    let worker = Worker(configuration, store: try arguments.openStore(.readWrite), log: log)
    Signals.ignoreBrokenPipes()
    Signals.onTermination { worker.stop() }
    try worker.run()
    return .done
  }
}
