public import FanoutStore
internal import Kafka
internal import Synchronization

/// A worker: consumes events and tasks, and keeps a store's views up to date, until it is stopped (SPEC 7).
public final class Worker: Sendable {
  private let configuration: WorkerConfiguration
  private let store: any Store
  private let log: Log
  private let shared = SharedProgress()

  public init(_ configuration: WorkerConfiguration, store: any Store, log: Log) {
    self.configuration = configuration
    self.store = store
    self.log = log
  }

  /// Works on the calling thread until `stop` is called, or with `untilCaughtUp` until that is so. Blocks; give it a thread.
  /// - Throws: `WorkerError` or `KafkaError` when it can't go on. Nothing is lost then: what was not acknowledged comes again.
  public func run() throws {
    let outlet = try Outlet(configuration: configuration.kafka, topics: configuration.topics)
    defer { outlet.close(timeoutMilliseconds: min(5000, shared.stop?.end.millisecondsFromNow ?? 5000)) }
    let lanes = try Lanes(
      configuration, store: store, handover: outlet, deadLetters: outlet,
      policy: FailurePolicy(isPatient: !configuration.untilCaughtUp), log: log)
    defer { lanes.close(until: min(.after(milliseconds: 1000), shared.stop?.leave ?? .after(milliseconds: 1000))) }
    let loop = ConsumeLoop(configuration, lanes: lanes, outlet: outlet, shared: shared, log: log)
    try loop.run()
  }

  /// Asks the worker to finish the batch at hand, commit and leave the group (SPEC 7, "SIGTERM"). Returns at once; any thread.
  public func stop() {
    shared.requestStop(gracePeriod: configuration.gracePeriod)
  }

  /// What has been done so far.
  public var counts: WorkerCounts { shared.counts }
}

/// What a worker's threads and its owner tell each other.
final class SharedProgress: Sendable {
  private struct State {
    var counts = WorkerCounts()
    var stop: StopDeadlines?
  }

  /// How the time for a stop is divided; nil while none was asked for.
  struct StopDeadlines {
    /// Until when the work at hand may be finished.
    let work: Instant
    /// Until when the group may be left.
    let leave: Instant
    /// When all must be over.
    let end: Instant
  }

  private let state = Mutex(State())

  var counts: WorkerCounts { state.withLock { $0.counts } }
  var stop: StopDeadlines? { state.withLock { $0.stop } }
  var isStopRequested: Bool { stop != nil }

  func add(_ counts: WorkerCounts) { state.withLock { $0.counts.add(counts) } }
  func countRebalance() { state.withLock { $0.counts.rebalances += 1 } }

  func pauseUnlessStopped(milliseconds: Int) {
    let end = Instant.after(milliseconds: milliseconds)
    while Instant.now < end && !isStopRequested { pause(milliseconds: min(100, end.millisecondsFromNow)) }
  }

  func requestStop(gracePeriod: Int) {
    state.withLock { state in
      guard state.stop == nil else { return }
      let now = Instant.now
      state.stop = StopDeadlines(
        work: now.advanced(milliseconds: gracePeriod * 7 / 10), leave: now.advanced(milliseconds: gracePeriod * 9 / 10),
        end: now.advanced(milliseconds: gracePeriod))
    }
  }
}
