import Foundation
import Testing

@Suite("The disk of a SQLite store is full or can't be written (SPEC 7)", .crowded)
struct DiskTests {
  private static let workload = Generated.workloads[1]
  /// So many take longer than the session of the worker lasts.
  private static let tries = 7

  @Test("a disk that gets full under a worker at work", .enabled(if: SmallDisk.isPossible, SmallDisk.missing))
  func full() async throws {
    let disk = try SmallDisk(megabytes: 32)
    defer { disk.remove() }
    let deployment = try await start(.sqliteAt(disk.file("store.db")))
    let endurance = try await Endurance.start(deployment)
    try await endurance.outlasts("has no room on its disk", tries: Self.tries) {
      // For some batches there is room.
      try disk.fill(leaving: 400_000)
    } work: {
      try await Self.workload.publish(deployment)
    } mend: {
      #expect(endurance.worker.standardError.contains("Free some space"))
      try disk.makeRoom()
    }
    try await endurance.ends()
    try await Self.workload.check(deployment, "there is room again")
  }

  @Test("a disk that fails under a worker at work", arguments: DiskFault.all)
  func failing(fault: DiskFault) async throws {
    let deployment = try await start(.sqlite)
    let endurance = try await Endurance.start(deployment, environment: DiskFault.environment(of: deployment))
    try await endurance.outlasts(fault.message, tries: Self.tries) {
      try fault.begin(in: deployment)
    } work: {
      try await Self.workload.publish(deployment)
    } mend: {
      try fault.end(in: deployment)
    }
    try await endurance.ends()
    try await Self.workload.check(deployment, "the disk is well again")
  }

  @Test("a worker started on a full disk waits for room", .enabled(if: SmallDisk.isPossible, SmallDisk.missing))
  func fullAtStart() async throws {
    let disk = try SmallDisk(megabytes: 32)
    defer { disk.remove() }
    let deployment = try await start(.sqliteAt(disk.file("store.db")))
    try await Self.workload.publish(deployment)
    try disk.fill()
    let worker = try deployment.startWorker()
    try await worker.says("can't open the store")
    #expect(worker.standardError.contains("has no room on its disk"), "\(worker.report)")
    try disk.makeRoom()
    try await deployment.allAcknowledged(by: [worker])
    #expect(try await worker.stopInOrder().deadLetters == 0)
    try await Self.workload.check(deployment, "there is room")
  }

  @Test(
    "a disk that can't be written ends whatever is started on it, as that is for somebody to mend",
    .enabled(if: SmallDisk.isPossible, SmallDisk.missing), arguments: [false, true])
  func readOnly(hasStore: Bool) async throws {
    let disk = try SmallDisk(megabytes: 32)
    defer { disk.remove() }
    let deployment = try await start(.sqliteAt(disk.file("store.db")))
    if hasStore { try await deployment.run(["migrate"]) }
    try disk.setReadOnly(true)
    for command in [["worker"], ["worker", "--until-caught-up"], ["replay"], ["migrate"]] {
      let refusal = try await deployment.run(command, expecting: 1)
      let reason = hasStore ? "can't be written" : "can't be opened"
      #expect(refusal.error.contains("\(disk.file("store.db")) \(reason)"), "\(refusal.error)")
    }
    try disk.setReadOnly(false)
    try await Self.workload.publish(deployment)
    try await deployment.catchUp()
    try await Self.workload.check(deployment, "it can be written")
  }

  private func start(_ store: StoreKind) async throws -> Deployment {
    try await Deployment.start(
      on: .embedded, store: store,
      environment: Self.workload.environment.merging([
        "FANOUT_SLICE_SIZE": "\(Self.workload.sliceSize)",
        "FANOUT_KAFKA": "session.timeout.ms=4000;heartbeat.interval.ms=500",
      ]) { $1 })
  }
}
