public import FanoutStore
private import SocialEvents

/// Applies a history to a store the way that unlucky workers would: in any order, cut into any batches, with slices that come
/// late and twice and crashes between the steps of SPEC 6. Whatever happens, the store must end up as the oracle says.
public struct HistoryRunner {
  private let history: History
  private let store: any Store
  private var random: SeededGenerator

  /// Records that are to be applied.
  private var queue: [Record]
  /// Records whose facts have been committed.
  private var committed: [Record] = []
  /// Records whose batch was broken off, and that are in the queue once more.
  private var interrupted: Set<Record> = []
  /// Slices that were returned and not derived yet, or are to be derived again.
  private var delayed: [FanoutSlice] = []

  private let maximumCut: Int
  private let crashes: Int
  private let delays: Int
  private let checks: Int

  /// Generates the history of a seed, applies it to a new store, and compares with the oracle.
  /// - Parameter makeStore: makes an empty store.
  /// - Throws: `ConformanceFailure`, which shows the differences and the history.
  public static func check(seed: UInt64, makeStore: (StoreSettings) throws -> any Store) throws {
    var generator = HistoryGenerator(seed: seed)
    let history = generator.history()
    var runner = HistoryRunner(history, store: try makeStore(history.settings))
    do {
      try runner.run()
    } catch {
      throw ConformanceFailure("\(error)\n\(history)")
    }
  }

  private init(_ history: History, store: any Store) {
    self.history = history
    self.store = store
    var random = SeededGenerator(seed: ~history.seed)
    queue =
      switch random.number(3) {
      case 0: history.records
      case 1: Self.jostled(history.records, using: &random)
      default: random.shuffled(history.records)
      }
    maximumCut = random.pick([1, 3, 8, 30, history.records.count])
    crashes = random.pick([0, 10, 40])
    delays = random.pick([0, 30, 90])
    checks = random.pick([0, 10])
    self.random = random
  }

  /// About in order, as from several partitions that are read side by side.
  private static func jostled(_ records: [Record], using random: inout SeededGenerator) -> [Record] {
    var records = records
    for index in records.indices {
      records.swapAt(index, min(records.count - 1, index + random.number(8)))
    }
    return records
  }

  private mutating func run() throws {
    while !queue.isEmpty {
      let cut = min(queue.count, 1 + random.number(maximumCut))
      let records = Array(queue.prefix(cut))
      queue.removeFirst(cut)
      if try process(records) {
        interrupted.subtract(records)
      } else {
        // After a restart the records come again, cut and mixed with others in any way.
        interrupted.formUnion(records)
        for record in records { queue.insert(record, at: random.number(queue.count + 1)) }
      }
      if random.chance(20) { try deriveSomeDelayed() }
      if random.chance(checks), interrupted.isEmpty, delayed.isEmpty { try checkConverged("part of the history") }
    }
    delayed = random.shuffled(delayed)
    while !delayed.isEmpty { try deriveDelayed(at: 0) }
    try checkConverged("the whole history")
    try replay()
  }

  /// One batch.
  /// - Returns: false when it was broken off by a crash.
  private mutating func process(_ records: [Record]) throws -> Bool {
    let batch = Self.batch(records)
    _ = try store.commitFacts(batch)
    committed += records
    if random.chance(checks) { try checkNothingDangles() }
    if random.chance(crashes) { return false }
    let sliceSize = random.pick([1, 2, 3, 5000])
    let derivation = try store.deriveViews(of: batch, sliceSize: sliceSize)
    if random.chance(crashes) { return false }
    for slice in random.shuffled(derivation.slices) {
      if random.chance(delays) {
        delayed.append(slice)
      } else {
        _ = try store.derive(slice, sliceSize: 1 + random.number(3))
        if random.chance(20) { delayed.append(slice) }
      }
    }
    // Slices are in the log before the batch is acknowledged, so a crash here repeats both.
    return !random.chance(crashes / 4)
  }

  private static func batch(_ records: [Record]) -> FactBatch {
    var batch = FactBatch()
    for record in records { batch.append(record.event, recorded: record.recorded) }
    batch.reduce()
    return batch
  }

  private mutating func deriveSomeDelayed() throws {
    for _ in 0..<random.number(delayed.count + 1) { try deriveDelayed(at: random.number(delayed.count)) }
  }

  private mutating func deriveDelayed(at index: Int) throws {
    let slice = delayed.remove(at: index)
    _ = try store.derive(slice, sliceSize: random.pick([1, 2, 5000]))
  }

  /// The whole history once more, in its own order and one batch, changes nothing (SPEC 6, 7).
  private mutating func replay() throws {
    let batch = Self.batch(history.records)
    let changes = try store.commitFacts(batch)
    try expectEqual(changes, 0, "registers changed by a replay of the whole history")
    let sliceSize = random.pick([1, 5000])
    for slice in try store.deriveViews(of: batch, sliceSize: sliceSize).slices {
      _ = try store.derive(slice, sliceSize: sliceSize)
    }
    try checkConverged("the whole history and its replay")
  }

  // MARK: Checks

  private mutating func checkConverged(_ after: String) throws {
    let expected = Oracle(committed, settings: history.settings).lines()
    if let difference = DumpLines.difference(try DumpLines.of(store), from: expected) {
      throw ConformanceFailure("after \(after) the store does not show what it should:\n\(difference)")
    }
    if checks > 0 { try ReadAudit.check(store, users: [], pageSize: 1 + random.number(3)) }
  }

  /// No reader is shown a deleted post or an absent edge, as soon as the facts are committed (SPEC 5).
  private func checkNothingDangles() throws {
    let oracle = Oracle(committed, settings: history.settings)
    try store.export { row in
      try expect(oracle.mayShow(row), "shown although its post is deleted or its edge absent: \(row)")
    }
  }
}
