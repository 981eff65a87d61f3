internal import FanoutStore
internal import FanoutWorker
private import FoundationEssentials
internal import Kafka
internal import SQLiteStore
internal import SocialEvents

/// Edges from Kafka to SQLite, beside the loop that one would begin with: decode by JSONDecoder, upsert row by row, one
/// transaction for a thousand, text ids in the key and the same two further indexes.
enum EdgeBench {
  static func run(_ context: BenchContext) throws {
    if let postgres = context.postgres { return try PostgresEdgeBench.run(context, postgres) }
    var data = BenchData(users: 20_000)
    let events = data.edgeEvents(context.events * 3)
    var ours: [Double] = []
    var theirs: [Double] = []
    try context.withTopics { kafka, topics in
      try EmitBench.emit(events, kafka, topics)
      for _ in 0..<context.rounds {
        ours.append(try replay(kafka, topics, into: context.newPath()).seconds)
        theirs.append(try PlainLoop(path: context.newPath()).run(kafka, topics))
      }
    }
    let a = BenchContext.median(ours)
    let b = BenchContext.median(theirs)
    context.report(
      "edges",
      "\(grouped(Double(events.count) / a)) events/s from the \(context.brokerName) to SQLite; row by row "
        + "\(grouped(Double(events.count) / b)) events/s: \(fixed(b / a, 2)) times as fast")
  }

  /// The worker's path without the wait for a group: from the first record to the last commit.
  static func replay(_ kafka: ClientConfiguration, _ topics: Topics, into path: String) throws -> Replay.Progress {
    let store = try SQLiteStore(path: path, access: .readWrite, settings: .standard)
    let replay = Replay(
      WorkerConfiguration(kafka: kafka, topics: topics, group: "bench-\(microsecondsSince1970())"),
      topicNames: topics.events, from: .beginning, store: store, log: Log(level: .warning) { note("\($0) \($1)") })
    return try replay.run { _ in }
  }
}

private final class PlainLoop {
  private struct Payload: Decodable {
    var actor: String
    var target: String?
    var author: String?
    var post: String?
  }

  private let database: Connection

  init(path: String) throws {
    database = try Connection(path: path, access: .create)
    try database.execute(
      """
      PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768;
      PRAGMA wal_autocheckpoint = 4000;
      CREATE TABLE edge(kind TEXT, actor TEXT, recipient TEXT, post TEXT, time TEXT, event TEXT, present INTEGER,
        PRIMARY KEY(kind, actor, recipient, post));
      CREATE INDEX edge_by_subject ON edge(kind, recipient, post, actor);
      CREATE INDEX edge_feedback ON edge(recipient, time) WHERE present;
      """)
  }

  func run(_ kafka: ClientConfiguration, _ topics: Topics) throws -> Double {
    let consumer = try Consumer(kafka, group: "bench-plain-\(microsecondsSince1970())")
    defer { _ = consumer.close(timeoutMilliseconds: 2000) }
    let start = Instant.now
    let marks = try consumer.watermarks(consumer.partitions(of: topics.events))
    var open = Set(marks.filter { $0.value.high > $0.value.low }.keys)
    try consumer.assign(open.map { ($0, .beginning) })
    let decoder = JSONDecoder()
    let upsert = try database.statement(
      """
      INSERT INTO edge VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)
      ON CONFLICT(kind, actor, recipient, post) DO UPDATE
        SET time = excluded.time, event = excluded.event, present = excluded.present
        WHERE (excluded.time, excluded.event) > (edge.time, edge.event)
      """)
    var inTransaction = 0
    var failure: (any Error)?
    func apply(_ record: borrowing ConsumedRecord) throws {
      var type = ""
      var time = ""
      var id = ""
      record.forEachHeader { name, value in
        guard let value else { return }
        let text = String(decoding: Array(copying: value), as: UTF8.self)
        switch String(decoding: Array(copying: name), as: UTF8.self) {
        case "ce_type": type = text
        case "ce_time": time = text
        case "ce_id": id = text
        default: break
        }
      }
      let bytes = record.withValue { value in
        if let value { Data(Array(copying: value)) } else { Data() }
      }
      let payload = try decoder.decode(Payload.self, from: bytes)
      if inTransaction == 0 { try database.execute("BEGIN IMMEDIATE") }
      let isPresent = !type.hasPrefix("un")
      upsert.bind(1, isPresent ? type : String(type.dropFirst(2)))
      upsert.bind(2, payload.actor)
      upsert.bind(3, payload.target ?? payload.author)
      upsert.bind(4, payload.post ?? "")
      upsert.bind(5, time)
      upsert.bind(6, id)
      upsert.bind(7, isPresent ? 1 : 0)
      try upsert.run()
      inTransaction += 1
      if inTransaction == 1000 {
        try database.execute("COMMIT")
        inTransaction = 0
      }
    }
    while !open.isEmpty {
      try consumer.poll(max: 1000, timeoutMilliseconds: 50) { record in
        do { try apply(record) } catch { failure = failure ?? error }
      }
      if let failure { throw failure }
      for partition in open where consumer.hasReachedEnd(partition) { open.remove(partition) }
    }
    if inTransaction > 0 { try database.execute("COMMIT") }
    return Instant.now.seconds(since: start)
  }
}
