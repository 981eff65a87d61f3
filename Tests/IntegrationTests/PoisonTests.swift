import Foundation
import PostgresTesting
import SocialEvents
import Testing

@Suite(
  "Events that the store refuses (SPEC 7), on a real Kafka", .crowded,
  .enabled(if: RealKafka.isPresent, RealKafka.missing),
  .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PoisonTests {
  private static let count = 1000

  /// Has the store refuse every edge whose actor's name begins with "poison".
  private func poison(_ store: OwnStore) throws {
    try store.execute(
      sqlite: """
        CREATE TRIGGER refuse BEFORE INSERT ON edge WHEN NEW.actor_id GLOB 'poison*' BEGIN
          SELECT RAISE(ABORT, 'not this one');
        END
        """,
      postgres: "ALTER TABLE edge ADD CONSTRAINT not_this_one CHECK (actor_id NOT LIKE 'poison%')")
  }

  @Test("go to the dead letters, exactly they, in bounded calls of the store", arguments: StoreKind.all, [1, 10, 1000])
  func batch(kind: StoreKind, poisonous: Int) async throws {
    let deployment = try await Deployment.start(on: .kafka, store: kind, partitions: 1)
    try await deployment.run(["migrate"])
    try poison(deployment.store)
    let step = Self.count / poisonous
    let names = (0..<Self.count).map { $0 % step == step / 2 ? "poison\($0)" : "good\($0)" }
    try await deployment.emit(lines: names.map { Lines.follow($0, "x", id: $0) }.joinedLines)

    let result = try await deployment.run([
      "worker", "--until-caught-up", "--batch-age", "5000", "--log-level", "debug",
    ])
    let report = try WorkerReport(log: result.error)
    #expect(report.deadLetters == poisonous)
    #expect(report.events == Self.count - poisonous)
    #expect(try deployment.lag() == 0)
    let letters = try deployment.records(of: [deployment.topics.deadLetters])
    #expect(letters.compactMap { $0.header("ce_id") }.sorted() == names.filter { $0.hasPrefix("poison") }.sorted())
    #expect(letters.allSatisfy { $0.header("fanout.dlq.reason") == "refused" })
    let followers = names.filter { $0.hasPrefix("good") }.map { Lines.followEdge($0, "x") }
    #expect(
      try await deployment.dump().filter { $0.contains(#""view":"edge""#) }.map(String.init) == followers.sorted())

    // What the documentation of the splitting states, and the batch as a whole and the letters once each.
    let halvings = Int(log2(Double(Self.count)).rounded(.up))
    let bound = min(2 * Self.count, 2 * poisonous * halvings + 1) + 2 * poisonous + 2
    let tries = result.error.split(separator: "\n").count {
      $0.contains("applied a batch") || $0.contains("debug committing facts")
    }
    #expect(tries <= bound && tries > poisonous, "\(tries) tries, at most \(bound)")
  }

  @Test(
    "a slice that the store refuses goes there, too; the other slices and events are done", arguments: StoreKind.all)
  func slice(kind: StoreKind) async throws {
    let deployment = try await Deployment.start(
      on: .kafka, store: kind, partitions: 1, environment: ["FANOUT_SLICE_SIZE": "10"])
    let followers = (0..<95).map { $0 == 50 ? "poison" : "u\($0)" }
    try await deployment.emit(lines: followers.map { Lines.follow($0, "x", id: $0) }.joinedLines)
    try await deployment.catchUp()
    // Nothing may come into the feed of that one.
    try deployment.store.execute(
      sqlite: """
        CREATE TRIGGER refuse BEFORE INSERT ON feed
        WHEN NEW.owner = (SELECT actor FROM edge WHERE actor_id = 'poison') BEGIN
          SELECT RAISE(ABORT, 'not this one');
        END
        """,
      postgres: "ALTER TABLE feed_row ADD CONSTRAINT not_this_one CHECK (owner <> fanout_key('poison'))")
    try await deployment.emit(
      lines: [Lines.post("x", "p", id: "p"), Lines.follow("last", "y", id: "last")].joinedLines)
    let report = try await deployment.catchUp()
    #expect(report.deadLetters == 1)
    #expect(try deployment.lag() == 0)
    let letters = try deployment.records(of: [deployment.topics.deadLetters])
    #expect(letters.map { $0.header("fanout.dlq.topic") } == [deployment.topics.tasks])
    #expect(letters.map { $0.header("fanout.dlq.reason") } == ["refused"])
    #expect(try await deployment.run(["show", "following", "last"]).lines == ["y"])

    // Of the 95 in ten slices, those of one slice have to wait for the redrive; and with the cause gone they get it.
    func feeds() async throws -> Int {
      try await deployment.dump().count { $0.hasPrefix(#"{"view":"feed""#) && !$0.contains(#""user":"x""#) }
    }
    let before = try await feeds()
    #expect(before >= 85 && before < 95, "\(before) feeds have the post")
    try deployment.store.execute(
      sqlite: "DROP TRIGGER refuse", postgres: "ALTER TABLE feed_row DROP CONSTRAINT not_this_one")
    try await deployment.run(["dead-letters", "redrive", "--all"])
    try await deployment.catchUp()
    #expect(try await feeds() == 95)
  }

  @Test(
    "while the dead letters can't be written nothing is acknowledged, and the worker is not ready",
    .enabled(if: KafkaTool.isPresent, KafkaTool.missing), arguments: StoreKind.all)
  func unwritable(kind: StoreKind) async throws {
    let deployment = try await Deployment.start(on: .kafka, store: kind, partitions: 1)
    try await deployment.run(["migrate"])
    try poison(deployment.store)
    func setLargest(_ change: String) async throws {
      try await KafkaTool.run([
        "configs", "--bootstrap-server", deployment.brokers, "--alter", "--entity-type", "topics", "--entity-name",
        deployment.topics.deadLetters, change, change == "--add-config" ? "max.message.bytes=1" : "max.message.bytes",
      ])
    }
    try await setLargest("--add-config")
    let ready = deployment.folder.file("ready")
    let worker = try deployment.startWorker(["--ready-file", ready])
    try await eventually("the worker is ready", else: worker.report) { FileManager.default.fileExists(atPath: ready) }

    let names = (0..<50).map { $0 == 7 ? "poison" : "good\($0)" }
    try await deployment.emit(lines: names.map { Lines.follow($0, "x", id: $0) }.joinedLines)
    try await worker.says("not ready: writing dead letters")
    #expect(!FileManager.default.fileExists(atPath: ready))
    #expect(try deployment.lag() == 50, "nothing may be acknowledged")

    try await setLargest("--delete-config")
    try await deployment.allAcknowledged(by: [worker])
    try await eventually("the worker is ready again", else: worker.report) {
      FileManager.default.fileExists(atPath: ready)
    }
    let report = try await worker.stopInOrder()
    #expect(!FileManager.default.fileExists(atPath: ready))
    #expect(report.deadLetters == 1)
    #expect(try deployment.records(of: [deployment.topics.deadLetters]).map { $0.header("ce_id") } == ["poison"])
    #expect(deployment.store.registerCount() == 49)
  }
}
