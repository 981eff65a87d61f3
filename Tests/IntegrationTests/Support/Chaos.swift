import FanoutStoreTesting
import Foundation
import Glibc
import Kafka
import PostgresTesting
import SocialEvents
import Synchronization
import Testing

/// Two workers under constant load, while processes, servers and the network between them fail at random moments; then all heals.
/// Each kind of failure happens once at least.
final class Chaos: Sendable {
  private static let history = ["--interactions", "20000", "--shuffle", "7", "--duplicate", "0.3"]
  private static let workload = Higgs.largeShuffled

  private let deployment: Deployment
  private let kafka: OwnKafka
  private let kafkaRelay: Relay
  /// The server and the way to it, where the views are on one.
  private let postgres: (server: OwnPostgres, relay: Relay)?
  private let workers: Mutex<[ChildProcess]>
  private let isOver = Mutex(false)
  private let tally = Mutex<[String: Int]>([:])

  static func run(on store: StoreKind, seed: UInt64) async throws {
    print("chaos on \(store.testDescription) with seed \(seed)")
    let folder = try TestFolder()
    // Clients come through the relay, whatever the broker tells them.
    let port = try freePort()
    let kafka = try await OwnKafka.start(
      in: folder,
      ["--set", "inter.broker.listener.name=PLAINTEXT", "--set", "advertised.listeners=PLAINTEXT://127.0.0.1:\(port)"])
    let relay = try Relay(from: port, to: kafka.brokers)
    defer { relay.stop() }
    var postgres: (server: OwnPostgres, relay: Relay)?
    var kind = StoreKind.sqlite
    if case .postgres = store {
      let server = try await onThread { try OwnPostgres() }
      let port = try freePort()
      let place = try #require(URLComponents(string: server.address))
      postgres = (server, try Relay(from: port, to: "127.0.0.1:\(try #require(place.port))"))
      kind = .postgresAt(server.address.replacing(":\(try #require(place.port))/", with: ":\(port)/"))
    }
    defer {
      postgres?.relay.stop()
      postgres?.server.stop()
    }
    let deployment = try await Deployment.start(
      on: .kafka, at: "127.0.0.1:\(port)", store: kind,
      environment: workload.environment.merging([
        "FANOUT_SLICE_SIZE": "\(workload.sliceSize)", "FANOUT_MAX_IN_FLIGHT": "1500", "FANOUT_STALL_TIMEOUT": "15",
        // Batches that wait, and offsets that don't: there is always something in flight, and what is acknowledged too early
        // is lost with the next kill.
        "FANOUT_BATCH_AGE": "300",
        "FANOUT_KAFKA": "session.timeout.ms=6000;heartbeat.interval.ms=500;auto.commit.interval.ms=100",
      ]) { $1 })
    let chaos = Chaos(deployment, kafka, relay, postgres, try await deployment.startWorkers(2))
    try await chaos.run(seed)
  }

  private init(
    _ deployment: Deployment, _ kafka: OwnKafka, _ kafkaRelay: Relay, _ postgres: (server: OwnPostgres, relay: Relay)?,
    _ workers: [ChildProcess]
  ) {
    self.deployment = deployment
    self.kafka = kafka
    self.kafkaRelay = kafkaRelay
    self.postgres = postgres
    self.workers = Mutex(workers)
  }

  private func run(_ seed: UInt64) async throws {
    let load = GradualLoad(try await Higgs.file(Self.history), on: deployment)
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await load.run() }
        group.addTask { try await self.watchOffsets() }
        group.addTask {
          async let processes: Void = self.failProcesses(SeededGenerator(seed: seed))
          async let servers: Void = self.failServers(SeededGenerator(seed: ~seed))
          _ = try await (processes, servers)
          load.hurry()
          self.isOver.withLock { $0 = true }
        }
        try await group.waitForAll()
      }
      let workers = workers.withLock { $0 }
      try await deployment.allAcknowledged(by: workers)
      for worker in workers { #expect(try await worker.stopInOrder().deadLetters == 0) }
    } catch {
      throw TestFailure("\(error)\nseed \(seed); \(reports)")
    }
    #expect(try deployment.lag() == 0)
    #expect(try deployment.records(of: [deployment.topics.deadLetters]).isEmpty)
    let happened = tally.withLock { $0.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" } }
    print("chaos with seed \(seed): \(happened.joined(separator: ", "))")
    try await Self.workload.check(deployment, "seed \(seed)\n\(reports)")
  }

  private var reports: String { workers.withLock { $0.map(\.report).joined(separator: "\n") } }

  // MARK: Offsets

  /// The group's progress never goes back: nobody commits what is not theirs any more.
  private func watchOffsets() async throws {
    var last: [TopicPartition: Int64] = [:]
    while !isOver.withLock({ $0 }) {
      let deployment = deployment
      if let now = try? await onThread({ try deployment.committed() }) {
        for (partition, next) in now where next < last[partition] ?? 0 {
          throw TestFailure("the offset of \(partition) went back from \(last[partition] ?? 0) to \(next)")
        }
        last.merge(now) { max($0, $1) }
      }
      try await Task.sleep(for: .milliseconds(500))
    }
  }

  // MARK: Failures

  private func note(_ what: String) { tally.withLock { $0[what, default: 0] += 1 } }

  private func wait(_ seconds: ClosedRange<Double>, _ random: inout SeededGenerator) async throws {
    try await Task.sleep(for: .seconds(Double.random(in: seconds, using: &random)))
  }

  /// Kills workers, and lets them sleep beyond their session, until the servers have failed in all ways.
  private func failProcesses(_ random: SeededGenerator) async throws {
    var random = random
    for kills in [true, true, false].shuffled(using: &random) + [false, true, true, false] {
      try await wait(0.5...3, &random)
      let index = Int.random(in: 0..<2, using: &random)
      let worker = workers.withLock { $0[index] }
      guard worker.isRunning else { throw TestFailure("a worker ended") }
      if kills {
        if try deployment.hasWork() { note("killed at work") } else { note("killed") }
        worker.kill()
        try await wait(0...3, &random)
        let next = try deployment.startWorker()
        workers.withLock { $0[index] = next }
      } else {
        try await worker.suspend()
        note("slept")
        // The session is six seconds.
        try await wait(1...10, &random)
        worker.signal(SIGCONT)
      }
    }
  }

  private enum Failure: CaseIterable {
    case kafkaRestart, kafkaKill, kafkaCut, kafkaDelay, kafkaBlackhole
    case postgresCrash, postgresFreeze, postgresCut, postgresDelay, postgresBlackhole
  }

  private func failServers(_ random: SeededGenerator) async throws {
    var random = random
    for failure in Failure.allCases.shuffled(using: &random) {
      try await wait(0.5...3, &random)
      switch failure {
      case .kafkaRestart: try await kafka.restart()
      case .kafkaKill: try await kafka.restart(byKilling: true)
      case .kafkaCut: try await kafkaRelay.cut()
      case .kafkaDelay: try await disturb(kafkaRelay, .delay(Int.random(in: 50...400, using: &random)), &random)
      case .kafkaBlackhole: try await disturb(kafkaRelay, .blackhole, &random)
      case .postgresCrash:
        guard let server = postgres?.server else { continue }
        try await onThread { try server.crash() }
        try await wait(0...3, &random)
        try await onThread { try server.start() }
      case .postgresFreeze:
        guard let server = postgres?.server else { continue }
        try await onThread { try server.freeze() }
        try await wait(3...8, &random)
        try await onThread { try server.thaw() }
      case .postgresCut:
        guard let relay = postgres?.relay else { continue }
        try await relay.cut()
      case .postgresDelay:
        guard let relay = postgres?.relay else { continue }
        try await disturb(relay, .delay(Int.random(in: 20...200, using: &random)), &random)
      case .postgresBlackhole:
        guard let relay = postgres?.relay else { continue }
        try await disturb(relay, .blackhole, &random)
      }
      note("\(failure)")
    }
  }

  private func disturb(_ relay: Relay, _ fault: Relay.Fault, _ random: inout SeededGenerator) async throws {
    try await relay.begin(fault)
    try await wait(3...8, &random)
    // A network that comes back has forgotten some connections.
    if Bool.random(using: &random) { try await relay.cut() }
    try await relay.heal()
  }
}

extension Deployment {
  /// Whether there is something that the group has not acknowledged, or nobody can say.
  fileprivate func hasWork() throws -> Bool { (try? lag()) ?? 1 > 0 }
}
