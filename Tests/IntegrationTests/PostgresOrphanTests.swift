import PostgresStore
import PostgresTesting
import Testing

@Suite(
  "Statements of a worker that is no more (SPEC 6, 7)", .crowded,
  .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PostgresOrphanTests {
  @Test(
    "a killed worker's statement that waits in the server ends before another worker goes on, and undoes nothing later")
  func killed() async throws {
    let schema = try ScratchSchema()
    let name = "orphan\(UInt32.random(in: 0...UInt32.max))"
    let store = StoreKind.postgresAt(address(schema.address, with: "application_name=\(name)"))
    let deployment = try await Deployment.start(on: .embedded, store: store)
    let posts = (1...5).map { Lines.post("bob", "p\($0)", id: "p\($0)") }
    try await deployment.emit(lines: ([Lines.follow("ann", "bob", id: "1")] + posts).joinedLines)
    try await deployment.catchUp()
    #expect(try await deployment.run(["show", "feed", "ann"]).lines.count == 5)

    // Its rows can't be deleted while somebody else holds one of them.
    let locker = SharedConnection(schema.address)
    let observer = SharedConnection(schema.address)
    try locker.execute("BEGIN")
    try locker.execute("SELECT 1 FROM feed_row WHERE owner = fanout_key('ann') FOR UPDATE")
    func waiting() throws -> Int {
      try observer.integer(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '\(name)' AND wait_event_type = 'Lock'")
    }
    let worker = try deployment.startWorker()
    try await deployment.emit(lines: Lines.unfollow("ann", "bob", id: "2") + "\n")
    try await eventually("the feed is about to lose its items", else: worker.report) { try waiting() > 0 }
    worker.kill()
    // Of other topics, as it takes the brokers a while to give the partitions to another worker.
    let next = try await Deployment.start(on: .embedded, store: store)
    try await next.emit(lines: Lines.follow("ann", "bob", id: "3") + "\n")
    try await next.catchUp()
    try locker.execute("ROLLBACK")
    try await eventually("nothing waits") { try waiting() == 0 }
    #expect(try await deployment.run(["show", "feed", "ann"]).lines.count == 5)
    schema.drop()
  }
}
