internal import Kafka

/// The thread that applies batches, one after the other, while the consumer's thread gathers the next.
///
/// One batch is being applied, one may wait: that bounds what is in flight, and keeps the store busy.
final class ApplyThread: Sendable {
  /// A batch that is done, or failed.
  struct Outcome: Sendable {
    let nextOffsets: [TopicPartition: Int64]
    let epoch: Int
    let result: Result<WorkerCounts, BatchApplier.Failure>
  }

  private struct State {
    var waiting: Batch?
    var isApplying = false
    var outcomes: [Outcome] = []
    var isGivenUp = false
    var isClosed = false
    var hasEnded = false
  }

  private let applier: BatchApplier
  private let state = Monitor(State())

  init(_ applier: BatchApplier) throws(WorkerError) {
    self.applier = applier
    let started = ServiceThread.run { [self] in run() }
    if !started { throw WorkerError("the system has no thread left for the worker") }
  }

  private func run() {
    while let batch = nextBatch() {
      let offsets = batch.nextOffsets
      let epoch = batch.epoch
      let result: Result<WorkerCounts, BatchApplier.Failure>
      do throws(BatchApplier.Failure) {
        result = .success(try applier.apply(batch) { [state] in state.withLock { $0.isGivenUp } })
      } catch {
        result = .failure(error)
      }
      state.withLock {
        $0.isApplying = false
        $0.outcomes.append(Outcome(nextOffsets: offsets, epoch: epoch, result: result))
      }
    }
    state.withLock { $0.hasEnded = true }
  }

  private func nextBatch() -> Batch? {
    state.wait(until: nil) { state -> Batch?? in
      if let batch = state.waiting, !state.isGivenUp {
        state.waiting = nil
        state.isApplying = true
        return .some(batch)
      }
      return state.isClosed ? .some(nil) : nil
    } ?? nil
  }

  // MARK: For the consumer's thread

  var isIdle: Bool { state.withLock { !$0.isApplying && $0.waiting == nil } }
  var hasRoom: Bool { state.withLock { $0.waiting == nil } }

  var hasOutcomes: Bool { state.withLock { !$0.outcomes.isEmpty } }

  /// Only when `hasRoom`.
  func submit(_ batch: Batch) {
    state.withLock { $0.waiting = batch }
  }

  /// Takes back the batch that has not been begun.
  func discardWaiting() {
    state.withLock { $0.waiting = nil }
  }

  func takeOutcomes() -> [Outcome] {
    state.withLock { state in
      defer { state.outcomes = [] }
      return state.outcomes
    }
  }

  /// Waits until a batch is done.
  func waitForOutcome(until deadline: Instant) {
    _ = state.wait(until: deadline) { $0.outcomes.isEmpty ? nil : () }
  }

  /// Whether all that was submitted is done by the deadline.
  func waitUntilIdle(until deadline: Instant) -> Bool {
    state.wait(until: deadline) { !$0.isApplying && $0.waiting == nil ? () : nil } != nil
  }

  /// Ends the thread: after what was submitted, or if that takes beyond the deadline, without it.
  func close(until deadline: Instant) {
    state.withLock { $0.isClosed = true }
    if state.wait(until: deadline, for: { $0.hasEnded ? () : nil }) == nil {
      state.withLock {
        $0.isGivenUp = true
        $0.waiting = nil
      }
    }
  }
}
