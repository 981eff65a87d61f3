import Foundation
import Glibc
import Kafka
import SQLiteStore
import SocialEvents
import Testing

@Suite("The store, the brokers or the dead letters are away (SPEC 7)", .crowded)
struct OutageTests {
  @Test(
    "a store that another process locks is waited for, and nothing is lost or dead-lettered",
    arguments: BrokerKind.available)
  func lockedStore(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    try await deployment.run(["migrate"])
    let lock = try StoreLock(deployment.store.path)
    try await deployment.emit(lines: (0..<50).map { Lines.follow("u\($0)", "x", id: "\($0)") }.joinedLines)
    let worker = try deployment.startWorker(["--max-in-flight", "3"])
    // SQLite itself waits for a while first.
    try await worker.says("locked by another process")
    #expect(try deployment.lag() == 50)
    #expect(worker.isRunning)
    lock.release()
    try await deployment.allAcknowledged(by: [worker])
    let report = try await worker.stopInOrder()
    #expect(report.retries > 0)
    #expect(report.deadLetters == 0)
    #expect(report["rebalances"] == 1, "it kept its place in the group meanwhile")
    #expect(deployment.store.registerCount() == 50)
  }

  @Test("a worker may be started before the brokers are there")
  func brokersLater() async throws {
    let folder = try TestFolder()
    let port = try freePort()
    let store = "sqlite:" + folder.file("store.db")
    let worker = try Fanout.start(
      ["worker", "--brokers", "127.0.0.1:\(port)", "--store", store], in: folder)
    try await worker.says("can't reach Kafka")
    // The embedded broker chooses its port itself, so a relay stands where the worker looks.
    let deployment = try await Deployment.start(on: .embedded)
    try await deployment.emit(lines: Lines.follow("ann", "bob", id: "1") + "\n")
    #expect(worker.isRunning)
    let relay = try Relay(from: port, to: deployment.brokers)
    try await eventually("ann is a follower of bob", else: worker.report) {
      try await Fanout.run(["show", "followers", "bob", "--store", store], in: folder, expecting: nil).output == "ann\n"
    }
    try await worker.stopInOrder()
    relay.stop()
  }

  @Test("a worker that waits for the brokers ends when asked; asked to catch up, it says that they are away")
  func noBrokers() async throws {
    let folder = try TestFolder()
    let options = ["worker", "--brokers", "127.0.0.1:9", "--store", "sqlite:" + folder.file("store.db")]
    let worker = try Fanout.start(options, in: folder)
    try await worker.says("can't reach Kafka")
    worker.signal(SIGTERM)
    #expect(try await worker.end() == 0, "\(worker.report)")
    let result = try await Fanout.run(options + ["--until-caught-up"], in: folder, expecting: 1)
    #expect(result.error.contains("can't reach Kafka at 127.0.0.1:9"), "\(result.error)")
  }

  @Test(
    "brokers that go away and come back: the worker waits and goes on", .enabled(if: Shared.isPresent, Shared.missing))
  func brokersRestart() async throws {
    let folder = try TestFolder()
    let broker = try await OwnKafka.start(in: folder)
    let options = ["FANOUT_BROKERS": broker.brokers, "FANOUT_STORE": "sqlite:" + folder.file("store.db")]
    _ = try await Fanout.run(["topics", "create", "--partitions", "2"], environment: options, in: folder)
    func emit(_ actor: String) async throws {
      let path = try folder.write("events.ndjson", Lines.follow(actor, "bob", id: actor) + "\n")
      _ = try await Fanout.run(["emit", path], environment: options, in: folder)
    }
    func followers(_ expected: Set<Substring>, _ worker: ChildProcess) async throws {
      try await eventually("bob's followers are \(expected)", else: worker.report) {
        #expect(worker.isRunning, "\(worker.report)")
        return Set(try await Fanout.run(["show", "followers", "bob"], environment: options, in: folder).lines)
          == expected
      }
    }
    try await emit("ann")
    let worker = try Fanout.start(["worker"], environment: options, in: folder)
    try await worker.isAssigned()
    try await followers(["ann"], worker)
    try await broker.restart()
    try await emit("carl")
    try await followers(["ann", "carl"], worker)
    try await worker.stopInOrder()
    try await broker.stop()
  }

  @Test(
    "a dead letter that Kafka does not take holds the offset back until it does",
    .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func deadLettersAway() async throws {
    let deployment = try await Deployment.start(on: .kafka, partitions: 1, createsTopics: false)
    let letters = deployment.topics.deadLetters
    // So small that not even a stub fits.
    _ = try Admin.createTopics(
      [Admin.TopicSpec(name: letters, partitions: 1, replicationFactor: 1, configuration: ["max.message.bytes": "50"])],
      with: deployment.client)
    try await deployment.run(["topics", "create", "--partitions", "1", "--replication-factor", "1"])
    try deployment.send([ProducerRecord(topic: deployment.topics.name(of: .likes), value: Array("nonsense".utf8))])
    let worker = try deployment.startWorker()
    try await worker.says("writing dead letters")
    #expect(try deployment.lag() == 1)
    #expect(worker.isRunning)
    try await worker.stopInOrder()
    #expect(try deployment.lag() == 1, "not even a stop gives it up")
  }

  @Test(
    "a record too large for the dead letters leaves a stub there that tells where it is",
    .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func stub() async throws {
    let deployment = try await Deployment.start(on: .kafka, partitions: 1, createsTopics: false)
    let letters = deployment.topics.deadLetters
    _ = try Admin.createTopics(
      [
        Admin.TopicSpec(
          name: letters, partitions: 1, replicationFactor: 1, configuration: ["max.message.bytes": "9000"])
      ],
      with: deployment.client)
    try await deployment.run(["topics", "create", "--partitions", "1", "--replication-factor", "1"])
    var noise = Noise(state: 7)
    let value = (0..<100_000).map { _ in noise.byte() }
    let likes = deployment.topics.name(of: .likes)
    try deployment.send([
      ProducerRecord(topic: likes, key: Array("k".utf8), value: value),
      ProducerRecord(topic: likes, key: Array("small".utf8), value: Array("nonsense".utf8)),
    ])
    let report = try await deployment.catchUp()
    #expect(report.deadLetters == 2)
    let found = try deployment.records(of: [letters])
    #expect(found.count == 2)
    let stub = try #require(found.first { $0.key == Array("k".utf8) })
    #expect(stub.header("fanout.dlq.size") == "100000")
    #expect(stub.header("fanout.dlq.sha256") == sha256(of: value))
    #expect(stub.header("fanout.dlq.topic") == likes)
    #expect(stub.header("fanout.dlq.reason") == "too-large")
    #expect(found.first { $0.key == Array("small".utf8) }?.value == Array("nonsense".utf8))
  }

  @Test(
    "an event that the store refuses goes to the dead letters alone, all others are applied (mastodon#12445)",
    arguments: BrokerKind.available)
  func refusedEvent(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(on: kind)
    try await deployment.run(["migrate"])
    let database = try Connection(path: deployment.store.path, access: .readWrite)
    try database.execute(
      """
      CREATE TRIGGER refuse BEFORE INSERT ON edge WHEN NEW.actor_id = 'u13' BEGIN
        SELECT RAISE(ABORT, 'not this one');
      END
      """)
    try await deployment.emit(lines: (0..<50).map { Lines.follow("u\($0)", "x", id: "\($0)") }.joinedLines)
    let report = try await deployment.catchUp()
    #expect(report.deadLetters == 1)
    #expect(deployment.store.registerCount() == 49)
    #expect(try deployment.lag() == 0)
    let letters = try deployment.records(of: [deployment.topics.deadLetters])
    #expect(letters.map { $0.header("ce_id") } == ["13"])
    #expect(letters.first?.header("fanout.dlq.reason") == "refused")
    #expect(letters.first?.header("fanout.dlq.message")?.contains("not this one") == true)

    let replay = try await deployment.run(["replay"])
    #expect(replay.output.contains("replayed 49 events"), "\(replay.output)")
    #expect(replay.output.contains("0 changes, 0 deliveries, 1 invalid"), "\(replay.output)")
  }
}
