import Glibc
import PostgresTesting
import Testing

@Suite(
  "PostgreSQL is full, closed or not the primary any more (SPEC 7)", .crowded,
  .enabled(if: OwnPostgres.isInstalled, OwnPostgres.missing))
struct PostgresServerTroubleTests {
  @Test("a disk that gets full under a worker at work", .enabled(if: SmallDisk.isPossible, SmallDisk.missing))
  func full() async throws {
    let workload = Generated.workloads[1]
    let disk = try SmallDisk(megabytes: 32, owner: "postgres")
    defer { disk.remove() }
    let server = try await onThread { try OwnPostgres() }
    defer { server.stop() }
    // Of the store, and not of the log, as a server without that ends itself.
    let database = SharedConnection(server.address)
    try database.execute("CREATE TABLESPACE small LOCATION '\(disk.path)'")
    try database.execute("ALTER DATABASE postgres SET default_tablespace = small")
    let deployment = try await Deployment.start(
      on: .embedded, store: .postgresAt(server.address),
      environment: workload.environment.merging(["FANOUT_SLICE_SIZE": "\(workload.sliceSize)"]) { $1 })
    let endurance = try await Endurance.start(deployment)
    try await endurance.outlasts("SQLSTATE 53100", tries: 4) {
      try disk.fill(leaving: 100_000)
    } work: {
      try await workload.publish(deployment)
    } mend: {
      #expect(endurance.worker.standardError.contains("Free some space"))
      try disk.makeRoom()
    }
    try await endurance.ends()
    try await workload.check(deployment, "there is room again")
  }

  @Test("a server that lets nobody in, or sets itself read-only")
  func closed() async throws {
    let server = try await onThread { try OwnPostgres() }
    defer { server.stop() }
    let administrator = SharedConnection(server.address)
    try administrator.execute("CREATE ROLE worker LOGIN; CREATE SCHEMA worker AUTHORIZATION worker")
    let deployment = try await Deployment.start(
      on: .embedded, store: .postgresAt("postgres://worker@\(server.place)/postgres"))
    let endurance = try await Endurance.start(deployment)
    func disconnect() throws {
      try administrator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'worker'")
    }
    func emit(_ actor: String) async throws {
      try await deployment.emit(lines: Lines.follow(actor, "x", id: actor) + "\n")
    }
    try await endurance.outlasts("too many connections") {
      try administrator.execute("ALTER ROLE worker CONNECTION LIMIT 0")
      try disconnect()
    } work: {
      try await emit("a")
    } mend: {
      try administrator.execute("ALTER ROLE worker CONNECTION LIMIT -1")
    }
    // Each time it is the next connection that can write again.
    try await endurance.outlasts("SQLSTATE 25006") {
      try administrator.execute("ALTER ROLE worker SET default_transaction_read_only = on")
      try disconnect()
    } work: {
      try await emit("b")
    } mend: {
      try administrator.execute("ALTER ROLE worker RESET default_transaction_read_only")
    }
    try await endurance.outlasts("is shutting down") {
      try await onThread { try server.beginToStop() }
      try disconnect()
    } work: {
      try await emit("c")
      // Another that is started meanwhile waits as well.
      let late = try deployment.startWorker()
      try await late.says("is shutting down")
      late.signal(SIGTERM)
      #expect(try await late.end() == 0, "\(late.report)")
    } mend: {
      try await onThread {
        try server.crash()
        try server.start()
      }
    }
    try await endurance.ends()
    #expect(deployment.store.registerCount() == 3)
  }

  @Test("a server that is stopped in its tracks, as its machine may be")
  func frozen() async throws {
    let server = try await onThread { try OwnPostgres() }
    defer { server.stop() }
    let deployment = try await Deployment.start(on: .embedded, store: .postgresAt(server.address))
    func emit(_ actor: String) async throws {
      try await deployment.emit(lines: Lines.follow(actor, "x", id: actor) + "\n")
    }
    let endurance = try await Endurance.start(deployment)
    let other = try deployment.startWorker(["--group", "other", "--grace-period", "2"])
    try await other.isAssigned()
    // It has a connection then.
    try await emit("a")
    try await deployment.allAcknowledged(by: [endurance.worker])
    let silence = "has not answered for 75 s"
    try await endurance.outlasts(silence) {
      try await onThread { try server.freeze() }
    } work: {
      try await emit("b")
      // A stop does not wait for the server.
      other.signal(SIGTERM)
      #expect(try await other.end() == 0 && !other.standardError.contains(silence), "\(other.report)")
    } mend: {
      try await onThread { try server.thaw() }
    }
    let said = endurance.worker.standardError
    let notReady = try #require(said.firstRange(of: "not ready: committing facts takes longer than 20 s"))
    #expect(notReady.upperBound < said.firstRange(of: silence)?.lowerBound ?? said.startIndex, "long before")
    try await endurance.ends()
    #expect(deployment.store.registerCount() == 2)
  }

  @Test(
    "a primary that goes, while its standby is none yet, comes back, and goes for good",
    arguments: zip(["", "?target_session_attrs=read-write"], ["SQLSTATE 25006", "session is read-only"]))
  func failover(parameter: String, message: String) async throws {
    let primary = try await onThread {
      try OwnPostgres(rules: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"])
    }
    defer { primary.stop() }
    let standby = try await onThread { try OwnPostgres(standbyOf: primary) }
    defer { standby.stop() }
    let deployment = try await Deployment.start(
      on: .embedded, store: .postgresAt("postgres://postgres@\(primary.place),\(standby.place)/postgres\(parameter)"))
    let endurance = try await Endurance.start(deployment)
    func emit(_ actor: String) async throws {
      try await deployment.emit(lines: Lines.follow(actor, "x", id: actor) + "\n")
    }
    try await emit("a")
    try await deployment.allAcknowledged(by: [endurance.worker])
    try await endurance.outlasts(message, tries: 3) {
      try await onThread { try primary.crash() }
    } work: {
      try await emit("b")
    } mend: {
      try await onThread { try primary.start() }
    }
    let end = try SharedConnection(primary.address).integer("SELECT pg_current_wal_lsn() - '0/0'")
    try await eventually("the standby has all that is acknowledged") {
      try SharedConnection(standby.address).integer("SELECT pg_last_wal_replay_lsn() - '0/0'") >= end
    }
    try await endurance.outlasts(message, tries: 3) {
      try await onThread { try primary.crash() }
    } work: {
      try await emit("c")
    } mend: {
      try await onThread { try standby.promote() }
    }
    try await endurance.ends()
    #expect(try SharedConnection(standby.address).integer("SELECT count(*) FROM edge") == 3)
  }
}
