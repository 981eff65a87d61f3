import FanoutStore
import FanoutStoreTesting
import SQLiteStore
import Synchronization
import Testing

/// Workers with a store each write one file at once (SPEC 6).
@Suite("Several workers on one SQLite file")
struct SeveralWorkersTests {
  /// Slices that a worker wrote and any may take, as on the tasks topic.
  private final class Tasks: Sendable {
    private let slices = Mutex<[FanoutSlice]>([])

    func add(_ more: [FanoutSlice]) { slices.withLock { $0 += more } }
    func take() -> FanoutSlice? { slices.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
  }

  private static func work(_ records: ArraySlice<Record>, _ store: any Store, _ tasks: Tasks, cut: Int) throws {
    var rest = records
    while !rest.isEmpty {
      var batch = FactBatch()
      for record in rest.prefix(cut) { batch.append(record.event, recorded: record.recorded) }
      batch.reduce()
      rest = rest.dropFirst(cut)
      _ = try store.commitFacts(batch)
      tasks.add(try store.deriveViews(of: batch, sliceSize: cut % 2 == 0 ? 1 : 5000).slices)
      while let slice = tasks.take() { _ = try store.derive(slice, sliceSize: 2) }
    }
  }

  @Test("they converge, whoever does what first", arguments: UInt64(1)...80)
  func converge(seed: UInt64) async throws {
    var generator = HistoryGenerator(seed: seed)
    let history = generator.history()
    let folder = try ScratchFolder()
    let tasks = Tasks()
    let half = history.records.count / 2
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (worker, share) in [history.records[..<half], history.records[half...]].enumerated() {
        group.addTask {
          let store = try SQLiteStore(path: folder.file("store.db"), access: .readWrite, settings: history.settings)
          try Self.work(share, store, tasks, cut: 1 + (Int(seed) + worker) % 4)
        }
      }
      try await group.waitForAll()
    }
    let store = try SQLiteStore(path: folder.file("store.db"), access: .readOnly, settings: history.settings)
    let expected = Oracle(history.records, settings: history.settings).lines()
    if let difference = DumpLines.difference(try DumpLines.of(store), from: expected) {
      Issue.record("\(difference)\n\(history)")
    }
  }

  @Test("threads may share one store")
  func shared() async throws {
    let folder = try ScratchFolder()
    let store = try SQLiteStore(path: folder.file("store.db"), access: .readWrite, settings: .standard)
    let users = 0..<40
    try await withThrowingTaskGroup(of: Void.self) { group in
      for user in users {
        group.addTask {
          let batch = Scenario.batch([.follow("u\(user)", "b", at: 1), .published("b", "p\(user)", at: Int64(user))])
          _ = try store.commitFacts(batch)
          _ = try store.deriveViews(of: batch, sliceSize: 5000)
          try ReadAudit.check(store, users: [], pageSize: 7)
        }
      }
      // An audit may see another thread's commit between two reads; only the end counts.
      while let result = await group.nextResult() {
        if case .failure(let error) = result, !(error is ConformanceFailure) { throw error }
      }
    }
    let events = users.flatMap { user -> [Record] in
      [
        Record(.follow("u\(user)", "b", at: 1), recorded: nil),
        Record(.published("b", "p\(user)", at: Int64(user)), recorded: nil),
      ]
    }
    let expected = Oracle(events, settings: .standard).lines()
    #expect(DumpLines.difference(try DumpLines.of(store), from: expected) == nil)
  }
}
