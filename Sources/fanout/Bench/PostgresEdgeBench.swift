internal import FanoutStore
internal import PostgresStore
internal import SocialEvents

/// Committing edges to PostgreSQL, beside one bulk upsert statement of the same rows: text ids, a primary key and two more indexes,
/// and a guard that lets the greater version win. Both get their rows as binary arrays through libpq, encoded within the time
/// that is taken; both in batches of one row an edge, one connection on each side, in turns.
enum PostgresEdgeBench {
  /// The most that a worker puts into a batch.
  private static let batchSize = 20_000

  static func run(_ context: BenchContext, _ postgres: String) throws {
    var data = BenchData(users: 20_000)
    let events = data.edgeEvents(context.events * 3)
    let batches = stride(from: 0, to: events.count, by: batchSize).map { start -> FactBatch in
      var batch = FactBatch()
      for event in events[start..<min(start + batchSize, events.count)] { batch.append(event, recorded: nil) }
      batch.reduce()
      return batch
    }
    var bytes = (ours: 0, theirs: 0)
    var first = Times()
    var again = Times()
    for _ in 0..<context.rounds {
      try context.withSchema(in: postgres) { schema in
        let store = try PostgresStore(address: schema.address, access: .readWrite, settings: .standard)
        let plain = try PlainUpsert(schema)
        try measure(batches, store, plain, &first)
        try measure(batches, store, plain, &again)
        let edges = try schema.database.integer("SELECT count(*) FROM edge")
        guard try schema.database.integer("SELECT count(*) FROM naive_edge") == edges else {
          throw CommandFailure("the sides wrote different edges")
        }
        bytes = (try schema.bytesPerRow(of: "edge"), try schema.bytesPerRow(of: "naive_edge"))
      }
    }
    for (times, words) in [(first, "for the first time"), (again, "known already")] {
      context.report(
        "edges",
        "\(grouped(Double(events.count) / times.ours)) events/s \(words); one bulk upsert with text ids "
          + "\(grouped(Double(events.count) / times.theirs)) events/s: \(fixed(times.theirs / times.ours, 2)) times as fast"
      )
    }

    context.report("edges", "\(bytes.ours) bytes an edge with its indexes; with text ids \(bytes.theirs)")
  }

  /// The time of each side in each round.
  private struct Times {
    var ourRounds: [Double] = []
    var theirRounds: [Double] = []

    var ours: Double { BenchContext.median(ourRounds) }
    var theirs: Double { BenchContext.median(theirRounds) }
  }

  private static func measure(
    _ batches: [FactBatch], _ store: PostgresStore, _ plain: PlainUpsert, _ times: inout Times
  ) throws {
    var ours = 0.0
    var theirs = 0.0
    for (index, batch) in batches.enumerated() {
      for side in [index % 2, (index + 1) % 2] {
        if side == 0 {
          ours += try BenchContext.time { _ = try store.commitFacts(batch) }
        } else {
          theirs += try BenchContext.time { try plain.write(batch.edges) }
        }
      }
    }
    times.ourRounds.append(ours)
    times.theirRounds.append(theirs)
  }
}

/// The table and the statement that one would begin with.
private struct PlainUpsert {
  private let database: Connection

  init(_ schema: BenchSchema) throws {
    database = schema.database
    try database.execute(
      """
      CREATE TABLE naive_edge(kind smallint, actor text, recipient text, post text, state smallint, time bigint, event text,
        extra text, PRIMARY KEY(kind, actor, recipient, post));
      CREATE INDEX ON naive_edge(kind, recipient, post, actor);
      CREATE INDEX ON naive_edge(recipient, time) WHERE state = 0;
      """)
  }

  func write(_ edges: [EdgeFact]) throws(StoreError) {
    try database.change(
      """
      INSERT INTO naive_edge
      SELECT * FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::text[],
        $8::text[])
      ON CONFLICT(kind, actor, recipient, post) DO UPDATE
        SET state = excluded.state, time = excluded.time, event = excluded.event, extra = excluded.extra
        WHERE (excluded.time, excluded.event) > (naive_edge.time, naive_edge.event)
      """,
      .smallIntegers(edges) { Int($0.edge.kind.rawValue) }, .texts(edges) { $0.edge.actor.string },
      .texts(edges) { $0.edge.recipient.string }, .texts(edges) { $0.edge.post?.string ?? "" },
      .smallIntegers(edges) { $0.state }, .integers(edges) { $0.version.time.microseconds },
      .texts(edges) { $0.version.event.string }, .texts(edges) { $0.extra })
  }
}
