import FanoutStore
import Glibc
import PostgresStore
import PostgresTesting
import Testing

@Suite(
  "PostgreSQL is away (SPEC 7)", .crowded, .serialized, .enabled(if: OwnPostgres.isInstalled, OwnPostgres.missing))
struct PostgresOutageTests {
  @Test(
    "crashes of the server and cut connections under load: nothing is lost, no worker ends",
    .enabled(if: Shared.isPresent, Shared.missing), .enabled(if: RealKafka.isPresent, RealKafka.missing),
    arguments: zip([1, 2], [Higgs.large, Higgs.largeSmallFeeds]))
  func crashes(workers: Int, workload: Workload) async throws {
    try await Outages.run(on: workload, workers: workers)
  }

  @Test("a worker may be started before the server is there")
  func serverLater() async throws {
    let server = try await onThread { try OwnPostgres() }
    defer { server.stop() }
    try await onThread { try server.crash() }
    let deployment = try await Deployment.start(on: .embedded, store: .postgresAt(server.address))
    try await deployment.emit(lines: Lines.follow("ann", "bob", id: "1") + "\n")
    let worker = try deployment.startWorker()
    try await worker.says("can't open the store")
    // Whoever waits for an answer wants to know.
    for command in [["digest"], ["migrate"], ["replay"], ["worker", "--until-caught-up"]] {
      let refusal = try await deployment.run(command, expecting: 1)
      #expect(refusal.error.contains("can't connect to PostgreSQL"), "\(refusal.error)")
    }
    #expect(worker.isRunning)
    try await onThread { try server.start() }
    try await deployment.allAcknowledged(by: [worker])
    #expect(try await deployment.run(["show", "followers", "bob"]).output == "ann\n")
    try await worker.stopInOrder()
  }

  /// To learn whether a refusal is one for good, the server is asked twice more, by when the network may have got worse again.
  @Test(
    "a network that breaks at any byte, comes back and breaks again is away, not a refusal",
    arguments: Relay.Break.allCases)
  func flapping(end: Relay.Break) async throws {
    let folder = try TestFolder()
    let certificates = try await Certificates.make(in: folder)
    let server = try await onThread {
      try OwnPostgres(
        rules: ["host all ann all scram-sha-256", "host all postgres 127.0.0.1/32 trust"],
        tls: (certificates.key, certificates.certificate))
    }
    defer { server.stop() }
    try SharedConnection(server.address).execute("CREATE ROLE ann LOGIN PASSWORD 'right'")
    let port = try freePort()
    let relay = try Relay(from: port, to: server.place)
    defer { relay.stop() }
    let address =
      "postgres://ann:right@127.0.0.1:\(port)/postgres?connect_timeout=2&sslmode=verify-full&sslrootcert="
      + certificates.authority
    // 1 is the answer to the wish for TLS; then come its handshake, the login, and what the server tells about itself.
    let all = end == .silent ? [1, 1500, 10_000] : [0, 1, 2, 100] + (5...50).map { $0 * 200 }
    var failures = 0
    for bytes in all {
      try await relay.begin(.breaking(end, afterBytes: bytes, every: 2))
      let failure: StoreError? = try await onThread {
        do throws(StoreError) {
          _ = try Connection(address)
          return nil
        } catch {
          return error
        }
      }
      // A connection that needed no more bytes than that.
      guard let failure else { break }
      failures += 1
      #expect(failure.isTransient, "\(bytes) bytes: \(failure)")
    }
    #expect(failures >= 2 && failures < all.count)
  }

  @Test("a worker that waits for the server ends when asked", arguments: [SIGTERM, SIGINT])
  func stopped(signal: Int32) async throws {
    let deployment = try await Deployment.start(
      on: .embedded, store: .postgresAt("postgres://ann:secret@127.0.0.1:1/views"))
    let worker = try deployment.startWorker()
    try await worker.says("can't open the store postgres://127.0.0.1:1/views yet")
    worker.signal(signal)
    #expect(try await worker.end() == 0, "\(worker.report)")
    #expect(!worker.standardError.contains("secret"))
  }

  @Test("what no waiting mends ends a worker at once: a wrong password, an unknown database or user, another schema")
  func refusals() async throws {
    let server = try await onThread {
      try OwnPostgres(rules: ["host all ann 127.0.0.1/32 scram-sha-256", "host all all 127.0.0.1/32 trust"])
    }
    defer { server.stop() }
    let database = SharedConnection(server.address)
    try database.execute("CREATE ROLE ann LOGIN PASSWORD 'right'; CREATE SCHEMA other; CREATE TABLE other.edge(a int)")
    let folder = try TestFolder()
    let place = try #require(server.address.split(separator: "@").last).replacing("/postgres", with: "")
    for (address, reason) in [
      ("ann:wrong@\(place)/postgres", "password authentication failed"),
      ("nobody@\(place)/postgres", "role \"nobody\" does not exist"),
      ("postgres@\(place)/nowhere", "database \"nowhere\" does not exist"),
      ("postgres@\(place)/postgres?options=-csearch_path%3Dother", "tables of another program"),
    ] {
      let worker = try await Fanout.run(["worker", "--store", "postgres://\(address)"], in: folder, expecting: 1)
      #expect(worker.error.contains(reason) && !worker.error.contains("trying again"), "\(worker.error)")
    }
  }
}
