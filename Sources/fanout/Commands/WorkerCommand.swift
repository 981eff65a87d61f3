internal import FanoutWorker
private import Glibc

extension Option {
  static let untilCaughtUp = Option.flag(
    "until-caught-up", "end once all that is in the topics now has been applied, tasks included")
  static let gracePeriod = Option(
    name: "grace-period", placeholder: "SECONDS", help: "how long a stop may take before the work at hand is given up",
    standard: "25")
  static let readyFile = Option(
    name: "ready-file", placeholder: "PATH",
    help: "a file that is there while the worker has its share and neither store nor brokers are away")
  static let stallTimeout = Option(
    name: "stall-timeout", placeholder: "SECONDS",
    help: "how long nothing may come of a partition that holds more, until the Kafka client is told, then replaced",
    standard: "30")
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
      Start as many as there are partitions; they share the work. Brokers or a store that are away are waited for, also at
      the start, except with --until-caught-up. What waiting does not mend, such as a wrong password or a file that may
      not be written, ends a worker at its start.
      """,
    options: [
      .store, .brokers, .kafka, .kafkaFile, .kafkaPasswordFile, .topicPrefix, .group, .feedLimit, .ownPosts, .sliceSize,
      .maxInFlight, .writers,
      .batchAge, .untilCaughtUp, .gracePeriod, .stallTimeout, .readyFile, .logLevel,
    ]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let log = try arguments.log()
    var configuration = try arguments.workerConfiguration(
      kafka: try arguments.kafka(log: log), group: try arguments.string(.group))
    configuration.untilCaughtUp = try arguments.flag(.untilCaughtUp)
    configuration.gracePeriod = try arguments.number(.gracePeriod, in: 1...3600) * 1000
    configuration.stallTimeout = try arguments.number(.stallTimeout, in: 1...3600) * 1000
    configuration.batchAge = try arguments.number(.batchAge, in: 0...60_000)
    if let path = arguments.optional(.readyFile) {
      let file = try ReadyFile(path)
      configuration.readinessChanged = { file.set($0) }
    }
    let stop = StopSwitch()
    Signals.ignoreBrokenPipes()
    Signals.onTermination { stop.turn() }
    // Until there is a store there is nothing to finish, and a try to connect may last longer than a stop may take.
    stop.onTurn { _exit(ExitCode.done.rawValue) }
    let store =
      configuration.untilCaughtUp
      ? try arguments.openStore(.readWrite) : try arguments.openStoreWhenThere(log: log)
    let worker = Worker(configuration, store: store, log: log)
    stop.onTurn { worker.stop() }
    try worker.run()
    return .done
  }
}
