internal import FanoutWorker
private import Glibc
internal import Kafka
internal import SocialEvents

extension Option {
  static let benchBrokers = Option(
    name: "brokers", placeholder: "HOST:PORT,…", help: "a real Kafka to measure on (an embedded broker, if not given)")
  static let benchStore = Option(
    name: "store", placeholder: "STORE",
    help:
      "postgres://USER@HOST/DATABASE to measure there, in schemas that are made and dropped; else it is SQLite files in a "
      + "temporary folder, whatever the path", standard: "sqlite:temporary")
  static let eventsFile = Option(
    name: "events", placeholder: "FILE",
    help: "what history consumes: one structured event a line (made-up, if not given)")
  static let followers = Option(
    name: "followers", placeholder: "N", help: "to how many followers celebrity fans out", standard: "1000000")
  static let scale = Option(
    name: "scale", placeholder: "N", help: "events of the larger benchmarks, in thousands", standard: "100")
  static let rounds = Option(
    name: "rounds", placeholder: "N", help: "how often each measurement is made", standard: "3")
}

extension Command {
  private static let benchmarks: [(name: String, run: @Sendable (BenchContext) throws -> Void)] = [
    ("decode", DecodeBench.run), ("emit", EmitBench.run), ("deliveries", DeliveryBench.run), ("edges", EdgeBench.run),
    ("history", HistoryBench.run), ("memory", MemoryBench.run), ("celebrity", CelebrityBench.run),
  ]

  static let bench = Command(
    name: "bench", operands: "[decode] [emit] [deliveries] [edges] [history] [memory] [celebrity]",
    summary: "measure this machine: rates, ratios to plain ways of doing the same, and peak memory",
    details: """
      All benchmarks, or those named. Each ratio is taken within one run, the two sides in turns. Rates are medians.
        decode      events decoded a second, beside Foundation's JSONDecoder on the same bytes
        emit        events emitted and acknowledged a second
        deliveries  feed rows written a second by fan-outs, beside INSERT INTO feed SELECT … with text ids
        edges       likes, favorites and follows from Kafka to the store, beside a loop that upserts row by row
        history     a mixed history from Kafka to the store, all views
        memory      peak resident size of a worker, on small and large backlogs and fan-outs
      On PostgreSQL (--store postgres://…):
        deliveries  beside the same statement issued by psql, on tables with two usual layouts; feeds have ten rows before
        edges       only the store's part, beside one bulk upsert statement of the same rows with text ids
        history     by a worker process, from its assignment to the end of its last batch
        celebrity   a post to --followers shared by two worker processes: rate, shares, rows of the largest transaction, and how long
                    ordinary events take to become visible during it and without it
      """,
    options: [
      .benchStore, .benchBrokers, .kafka, .kafkaFile, .kafkaPasswordFile, .eventsFile, .followers, .scale, .rounds,
    ]
  ) { arguments in
    for name in arguments.operands where !benchmarks.contains(where: { $0.name == name }) {
      throw UsageError(
        "there is no benchmark \"\(name)\"; choose from \(benchmarks.map(\.name).joined(separator: ", "))")
    }
    Signals.ignoreBrokenPipes()
    let context = try BenchContext(arguments)
    try context.reportServer()
    for (name, run) in benchmarks where arguments.operands.isEmpty || arguments.operands.contains(name) {
      try run(context)
    }
    return .done
  }
}

/// What benchmarks share: where they measure, how much, and how they print.
final class BenchContext {
  let events: Int
  let rounds: Int
  let followers: Int
  let folder: TemporaryFolder
  /// The address of the PostgreSQL to measure on; nil for SQLite.
  let postgres: String?
  private let realKafka: ClientConfiguration?
  private let eventsFile: String?
  private let output = Output()
  private var serial = 0

  /// Of each topic, where nothing else is said.
  static let partitions = 12

  init(_ arguments: Arguments) throws {
    events = try arguments.number(.scale, in: 1...10_000) * 1000
    rounds = try arguments.number(.rounds, in: 1...100)
    followers = try arguments.number(.followers, in: 10_000...100_000_000)
    folder = try TemporaryFolder()
    if case .postgres(let uri) = try StoreAddress(try arguments.string(.benchStore)) {
      postgres = uri
    } else {
      postgres = nil
    }
    eventsFile = arguments.optional(.eventsFile)
    realKafka = arguments.optional(.benchBrokers) == nil ? nil : try arguments.kafka()
  }

  /// Topics of their own on the real Kafka, or an embedded broker that lives as long as `body`.
  func withTopics<T>(partitions: Int = BenchContext.partitions, _ body: (ClientConfiguration, Topics) throws -> T)
    throws -> T
  {
    serial += 1
    let topics = Topics(prefix: "bench-\(microsecondsSince1970())-\(serial).")
    if let realKafka {
      let specs = topics.all.map { Admin.TopicSpec(name: $0, partitions: partitions) }
      _ = try Admin.createTopics(specs, with: realKafka)
      try TopicLayout.waitForLeaders(of: topics.all, realKafka)
      return try body(realKafka, topics)
    }
    let broker = try EmbeddedBroker(topics: topics.all.map { ($0, partitions) })
    defer { broker.close() }
    return try body(
      ClientConfiguration(
        brokers: broker.bootstrapServers, properties: EmbeddedBroker.clientProperties), topics)
  }

  var brokerName: String { realKafka == nil ? "embedded broker" : "real Kafka" }

  /// A path for a new file, for a store if nothing else is said.
  func newPath(_ ending: String = "db") -> String {
    serial += 1
    return "\(folder.path)/bench-\(serial).\(ending)"
  }

  func write(_ text: String, to path: String) throws {
    guard let file = unsafe fopen(path, "w") else { throw CommandFailure("can't write \(path)") }
    let isWritten = unsafe fputs(text, file) >= 0
    guard unsafe fclose(file) == 0, isWritten else { throw CommandFailure("can't write \(path)") }
  }

  /// A schema in the PostgreSQL at `uri` that lives as long as `body`.
  func withSchema<T>(in uri: String, _ body: (BenchSchema) throws -> T) throws -> T {
    serial += 1
    return try BenchSchema.with(uri, "\(microsecondsSince1970())_\(serial)", body)
  }

  /// A new store of the kind to be measured, as `--store` names it, that lives as long as `body`.
  func withStore<T>(_ body: (String) throws -> T) throws -> T {
    guard let postgres else { return try body("sqlite:" + newPath()) }
    return try withSchema(in: postgres) { try body($0.address) }
  }

  /// The events of `--events`, or a made-up history.
  func history() throws -> [Event] {
    guard let eventsFile else {
      var data = BenchData(users: max(100, events / 5))
      return data.history(events)
    }
    var history: [Event] = []
    try LineReader(path: eventsFile).forEachLine { number, line in
      guard let line else { throw CommandFailure("line \(number) of \(eventsFile) is too long") }
      do throws(InvalidEvent) {
        history.append(try EventDecoder.decodeStructured(line).event)
      } catch {
        throw CommandFailure("line \(number) of \(eventsFile): \(error)")
      }
    }
    return history
  }

  func reportServer() throws {
    if let postgres { report("store", try BenchSchema.describeServer(postgres)) }
  }

  func report(_ name: String, _ text: String) {
    output.line("\(Help.pad(name, 12))\(text)")
    output.flush()
  }

  /// Runs `body` and gives its time in seconds.
  static func time(_ body: () throws -> Void) rethrows -> Double {
    let start = Instant.now
    try body()
    return Instant.now.seconds(since: start)
  }

  static func median(_ values: [Double]) -> Double { quantile(0.5, values) }

  /// The value that a share of all are below.
  static func quantile(_ share: Double, _ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
  }
}
