import FanoutStore
import FanoutStoreTesting
import Glibc
import SQLiteStore
import Testing

/// Whatever the order, the batches, the delays and the crashes, every store ends up as the oracle says.
@Suite("Convergence")
struct ConvergenceTests {
  /// Work for one test case: enough of them to keep all cores busy.
  static let chunks = 16
  static let seeds = Seeds()

  @Test("the model converges", arguments: 0..<chunks)
  func memory(chunk: Int) {
    for seed in Self.seeds.of(chunk: chunk, of: Self.chunks) {
      check(seed) { MemoryStore(settings: $0) }
    }
  }

  @Test("SQLite converges", arguments: 0..<chunks)
  func sqlite(chunk: Int) throws {
    for seed in Self.seeds.of(chunk: chunk, of: Self.chunks) {
      let folder = try ScratchFolder()
      check(seed) { try SQLiteStore(path: folder.file("store.db"), access: .readWrite, settings: $0) }
    }
  }

  private func check(_ seed: UInt64, makeStore: (StoreSettings) throws -> any Store) {
    do {
      try HistoryRunner.check(seed: seed, makeStore: makeStore)
    } catch {
      Issue.record("\(error)\nagain: FANOUT_SEED=\(seed) swift test -c release --filter ConvergenceTests")
    }
  }
}

/// Which histories to run: `FANOUT_HISTORIES` of them (2,000), or the one of `FANOUT_SEED`.
struct Seeds {
  private let all: Range<UInt64>

  init() {
    if let seed = Self.number("FANOUT_SEED") {
      all = seed..<seed + 1
    } else {
      all = 1..<1 + (Self.number("FANOUT_HISTORIES") ?? 2000)
    }
  }

  func of(chunk: Int, of chunks: Int) -> some Sequence<UInt64> {
    stride(from: all.lowerBound + UInt64(chunk), to: all.upperBound, by: chunks)
  }

  private static func number(_ variable: String) -> UInt64? {
    unsafe getenv(variable).flatMap { unsafe UInt64(String(cString: $0)) }
  }
}
