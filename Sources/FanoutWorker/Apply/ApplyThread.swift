internal import Kafka

/// The thread that applies the batches of a lane, one after the other, while the consumer's thread gathers the next.
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
    var isGivenUp = false
    var isClosed = false
    var hasEnded = false
  }

  private let applier: BatchApplier
  private let outcomes: Monitor<[Outcome]>
  private let note: @Sendable (_ isApplying: Bool) -> Void
  private let state = Monitor(State())

  /// - Parameters:
  ///   - outcomes: where batches that are done are put.
  ///   - note: told when a batch is begun, and when it is done.
  init(
    _ applier: BatchApplier, outcomes: Monitor<[Outcome]>,
    note: @escaping @Sendable (_ isApplying: Bool) -> Void = { _ in }
  ) throws(WorkerError) {
    self.applier = applier
    self.outcomes = outcomes
    self.note = note
    let started = ServiceThread.run { [self] in run() }
    if !started { throw WorkerError("the system has no thread left for the worker") }
  }

  private func run() {
    while let batch = nextBatch() {
      let offsets = batch.nextOffsets
      let epoch = batch.epoch
      let result: Result<WorkerCounts, BatchApplier.Failure>
      note(true)
      do throws(BatchApplier.Failure) {
        result = .success(try applier.apply(batch) { [state] in state.withLock { $0.isGivenUp } })
      } catch {
        result = .failure(error)
      }
      note(false)
      // Before it is idle, so that whoever finds it idle finds the outcome, too.
      outcomes.withLock { $0.append(Outcome(nextOffsets: offsets, epoch: epoch, result: result)) }
      state.withLock { $0.isApplying = false }
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

  /// Only when `hasRoom`.
  func submit(_ batch: Batch) {
    state.withLock { $0.waiting = batch }
  }

  /// Takes back the batch that has not been begun.
  func discardWaiting() {
    state.withLock { $0.waiting = nil }
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
