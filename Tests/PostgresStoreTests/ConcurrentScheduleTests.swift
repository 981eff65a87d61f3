import FanoutStore
import FanoutStoreTesting
import Foundation
import PostgresStore
import PostgresTesting
import Synchronization
import Testing

/// Four workers with connections of their own apply one history at once, as the server happens to schedule them (SPEC 6).
@Suite("Concurrent schedules on PostgreSQL", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct ConcurrentScheduleTests {
  static let workers = 4
  static let chunks = 2

  /// `FANOUT_SCHEDULES` of them (500), or the one of `FANOUT_SEED`.
  static let seeds: Range<UInt64> = {
    let environment = ProcessInfo.processInfo.environment
    if let seed = environment["FANOUT_SEED"].flatMap(UInt64.init) { return seed..<seed + 1 }
    return 1..<1 + (environment["FANOUT_SCHEDULES"].flatMap(UInt64.init) ?? 500)
  }()

  @Test("they converge, whoever does what first", arguments: 0..<chunks)
  func converge(chunk: Int) async throws {
    for seed in Self.seeds where seed % UInt64(Self.chunks) == UInt64(chunk) {
      if let difference = try await Self.difference(seed: seed, hooks: StepHooks()) { Issue.record("\(difference)") }
    }
  }

  /// What this suite is for: without step 3 of SPEC 6 the same schedules go wrong.
  ///
  /// Long pauses where it matters, between the reading of facts and the writing that goes by them, so that few schedules are
  /// enough however busy the machine is.
  @Test("without the check after the commit they do not converge")
  func mutation() async throws {
    let hooks = StepHooks(
      reached: { step in
        if step == .factsRead, Bool.random() { usleep(UInt32.random(in: 0...20_000)) }
      }, checksAfterCommit: false)
    var wrong = 0
    for seed in UInt64(1)...400 where wrong < 1 {
      if try await Self.difference(seed: seed, hooks: hooks) != nil { wrong += 1 }
    }
    #expect(wrong > 0)
  }

  @Test("they converge with pauses at the boundaries of steps, too", arguments: 0..<chunks)
  func pauses(chunk: Int) async throws {
    for seed in Self.seeds where seed % UInt64(Self.chunks) == UInt64(chunk) && seed <= 200 {
      if let difference = try await Self.difference(seed: seed, hooks: StepHooks(reached: Self.pause)) {
        Issue.record("\(difference)")
      }
    }
  }

  static let pause: @Sendable (Step) -> Void = { _ in
    if Int.random(in: 0..<3) == 0 { usleep(UInt32.random(in: 0...3000)) }
  }

  /// Slices that a worker wrote and any may take, as on the tasks topic.
  private final class Tasks: Sendable {
    private let slices = Mutex<[FanoutSlice]>([])

    func add(_ more: [FanoutSlice]) { slices.withLock { $0 += more } }
    func take() -> FanoutSlice? { slices.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
  }

  /// Applies the history of a seed.
  /// - Returns: what is wrong in the end, nil if nothing is.
  static func difference(
    seed: UInt64, hooks: StepHooks, layout: Place.Layout = .whole
  ) async throws -> String? {
    var generator = HistoryGenerator(seed: seed)
    let history = generator.history()
    let place = try Place(settings: history.settings, layout: layout)
    let store = hooks.reached == nil ? place.store : try place.open(hooks: hooks)
    let tasks = Tasks()
    var shares = [[Record]](repeating: [], count: workers)
    // Neighbours go to different workers, where they meet.
    for (index, record) in history.records.enumerated() { shares[index % workers].append(record) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (worker, share) in shares.enumerated() {
        group.addTask {
          try await onThread {
            try work(share, store, tasks, cut: 1 + (Int(seed) + worker) % 4)
          }
        }
      }
      try await group.waitForAll()
    }
    let expected = Oracle(history.records, settings: history.settings).lines()
    let shown = try DumpLines.of(place.store)
    if let difference = DumpLines.difference(shown, from: expected) { return "\(difference)\n\(history)" }
    let leftovers = try place.integer(Place.leftovers)
    return leftovers == 0 ? nil : "\(leftovers) feed rows left that nobody is shown\n\(history)"
  }

  private static func work(_ records: [Record], _ store: any Store, _ tasks: Tasks, cut: Int) throws {
    var rest = records[...]
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
}
