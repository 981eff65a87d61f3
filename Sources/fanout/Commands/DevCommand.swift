internal import FanoutWorker
internal import Kafka
internal import SocialEvents

extension Option {
  static let brokerOnly = Option.flag("broker-only", "start the embedded broker with its topics, and no worker")
  static let devPartitions = Option(
    name: "partitions", placeholder: "N", help: "partitions of each topic", standard: "4")
}

extension Command {
  static let dev = Command(
    name: "dev",
    summary: "run an embedded broker and a worker, for development",
    details: """
      Prints the broker's address, to be used as --brokers by other commands and services. The broker lives in memory, keeps
      at most 5 MiB a partition, and is gone when the command ends (SIGINT or SIGTERM). The store stays.
      """,
    options: [
      .store, .topicPrefix, .devPartitions, .brokerOnly, .group, .feedLimit, .ownPosts, .sliceSize, .maxInFlight,
      .writers, .logLevel,
    ]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let log = try arguments.log()
    let topics = try arguments.topics()
    let partitions = try arguments.number(.devPartitions, in: 1...1000)
    let stop = StopSwitch()
    Signals.ignoreBrokenPipes()
    Signals.onTermination { stop.turn() }
    let broker = try EmbeddedBroker(topics: topics.all.map { ($0, partitions) })
    defer { broker.close() }
    let output = Output()
    output.line("brokers=\(broker.bootstrapServers)")
    output.flush()
    if try arguments.flag(.brokerOnly) {
      stop.wait()
      return .done
    }
    let address = try arguments.storeAddress()
    let configuration = try arguments.workerConfiguration(
      kafka: ClientConfiguration(brokers: broker.bootstrapServers, properties: EmbeddedBroker.clientProperties),
      group: try arguments.string(.group))
    let worker = Worker(
      configuration, store: try arguments.openStore(.readWrite), log: log)
    output.line("store=\(address.option)")
    output.line("try, in another terminal:")
    output.line(
      #"  echo '{"specversion":"1.0","id":"1","source":"/me","type":"follow","time":"2026-07-25T10:00:00Z","#
        + #""data":{"actor":"ann","target":"bob"}}' | fanout emit --brokers \#(broker.bootstrapServers)"#)
    output.line("  fanout show followers bob --store \(address.option)")
    output.flush()
    stop.onTurn { worker.stop() }
    try worker.run()
    return .done
  }
}
