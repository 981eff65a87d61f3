internal import FanoutStore
internal import Kafka
internal import SocialEvents
internal import Synchronization

/// Applies batches: facts, then views, then slices and dead letters (SPEC 6). When `apply` returns, the batch may be
/// acknowledged. Until then every step can be repeated without changing anything.
final class BatchApplier: Sendable {
  /// Why a batch was not applied.
  enum Failure: Error, CustomStringConvertible {
    /// Nobody waits for it any more: a stop, or the end of a grace period.
    case givenUp
    /// It has to be split, as the store refused a value among those of the batch or did not get done in time.
    case tooMuch(FailurePolicy.Failure, String)
    /// The store or Kafka refused, and trying again would not help.
    case final(String)

    var description: String {
      switch self {
      case .givenUp: "given up"
      case .tooMuch(_, let message), .final(let message): message
      }
    }
  }

  private let store: any Store
  private let handover: any SliceHandover
  /// Nil: records that can't be applied are only logged.
  private let deadLetters: Outlet?
  private let reader: BatchReader
  private let sliceSize: Int
  private let beforeSlice: @Sendable () -> Void
  private let policy: FailurePolicy
  private let log: Log
  private let state = Mutex(State())

  private struct State {
    var trouble: Trouble?
    /// What the store or Kafka is asked for at the moment, and since when.
    var step: (name: String, since: Instant)?
  }

  /// What a step that is being retried waits for, or one that takes very long.
  struct Trouble {
    let message: String
    let isFetchingPaused: Bool
  }

  /// How long a step may take, in seconds, before the worker is no longer ready. A store may be silent for longer than that.
  private static let longStep = 20

  /// - Parameter beforeSlice: called before each slice that came as a task; may wait.
  init(
    store: any Store, handover: any SliceHandover, deadLetters: Outlet?, reader: BatchReader, sliceSize: Int,
    beforeSlice: @escaping @Sendable () -> Void, policy: FailurePolicy, log: Log
  ) {
    self.beforeSlice = beforeSlice
    self.reader = reader
    self.store = store
    self.handover = handover
    self.deadLetters = deadLetters
    self.sliceSize = sliceSize
    self.policy = policy
    self.log = log
  }

  /// Nil while all is well.
  var trouble: Trouble? {
    let (trouble, step) = state.withLock { ($0.trouble, $0.step) }
    if let trouble { return trouble }
    guard let step, Instant.now.seconds(since: step.since) > Double(Self.longStep) else { return nil }
    return Trouble(message: "\(step.name) takes longer than \(Self.longStep) s", isFetchingPaused: false)
  }

  /// - Parameter isGivenUp: asked between tries, and while waiting for the next.
  func apply(_ batch: Batch, isGivenUp: @escaping @Sendable () -> Bool) throws(Failure) -> WorkerCounts {
    do {
      return try applyWhole(batch, isGivenUp: isGivenUp)
    } catch {
      guard case .tooMuch(_, let message) = error else { throw error }
      log.warning("\(message); the batch of \(batch.recordCount) records is split")
      var counts = WorkerCounts()
      var retries = 0
      var positions = batch.firstOffsets
      try persist("reading a batch again", &retries, isGivenUp) {
        try self.reader.read(from: &positions, to: batch.nextOffsets, isGivenUp: isGivenUp) { singles in
          counts.add(try self.applySplitting(singles, isGivenUp: isGivenUp))
        }
      }
      counts.retries += retries
      return counts
    }
  }

  /// Applies the records in parts that the store takes. Those that it refuses are found by halving and become dead letters (SPEC 7).
  ///
  /// For n records of which it refuses k, a batch is tried at most min(2n, 2k·⌈log₂ n⌉ + 1) times until each is alone, and then
  /// twice more for each of the k.
  private func applySplitting(
    _ singles: [SingleRecord], isGivenUp: @escaping @Sendable () -> Bool
  ) throws(Failure) -> WorkerCounts {
    var counts = WorkerCounts()
    var open = [singles.indices]
    var refused: [(index: Int, message: String)] = []
    while let range = open.popLast() {
      if range.isEmpty { continue }
      do {
        counts.add(try applyWhole(Batch(merging: singles[range]), isGivenUp: isGivenUp))
      } catch {
        guard case .tooMuch(let kind, let message) = error else { throw error }
        if case .split(let parts) = policy.decide(kind, records: range.count, failures: 1) {
          // The last one is taken first.
          for part in (0..<parts).reversed() {
            let start = range.lowerBound + range.count * part / parts
            open.append(start..<range.lowerBound + range.count * (part + 1) / parts)
          }
        } else {
          refused.append((range.lowerBound, message))
        }
      }
    }
    var failures = 1
    while !refused.isEmpty {
      guard case .retry(let time, _) = policy.decide(.refusedValue, records: 1, failures: failures) else { break }
      try wait(until: time, isGivenUp)
      var again: [(index: Int, message: String)] = []
      for (index, _) in refused {
        counts.retries += 1
        do {
          counts.add(try applyWhole(singles[index].batch, isGivenUp: isGivenUp))
        } catch {
          guard case .tooMuch(_, let message) = error else { throw error }
          again.append((index, message))
        }
      }
      refused = again
      failures += 1
    }
    if refused.isEmpty { return counts }
    var letters = Batch()
    letters.recordCount = refused.count
    letters.deadLetters = refused.map { reader.deadLetter(singles[$0.index].record, $0.message) }
    counts.add(try applyWhole(letters, isGivenUp: isGivenUp))
    return counts
  }

  private func applyWhole(
    _ batch: Batch, isGivenUp: @escaping @Sendable () -> Bool
  ) throws(Failure) -> WorkerCounts {
    var counts = WorkerCounts()
    counts.records = batch.recordCount
    counts.tombstones = batch.tombstoneCount
    counts.events = batch.facts.eventCount
    let facts = batch.facts
    let traces = batch.traces
    let began = Instant.now
    var haveFacts = began

    if !facts.isEmpty {
      let records = batch.recordCount
      counts.changes = try persist("committing facts", records: records, &counts.retries, isGivenUp) {
        try self.store.commitFacts(facts)
      }
      haveFacts = .now
      let derivation = try persist("deriving views", records: records, &counts.retries, isGivenUp) {
        try self.store.deriveViews(of: facts, sliceSize: self.sliceSize)
      }
      counts.deliveries += derivation.deliveries
      if !derivation.slices.isEmpty {
        counts.deliveries += try persist("handing over slices", &counts.retries, isGivenUp) {
          try self.handover.handOver(derivation.slices) { traces.isEmpty ? nil : traces[StoreKey($0.post)] }
        }
        counts.slicesHandedOver += derivation.slices.count
      }
    }
    let haveViews = Instant.now
    for slice in batch.slices {
      beforeSlice()
      if isGivenUp() { throw .givenUp }
      counts.deliveries += try persist("deriving a slice", &counts.retries, isGivenUp) {
        try self.store.derive(slice, sliceSize: self.sliceSize)
      }
      counts.slices += 1
    }
    if !batch.deadLetters.isEmpty {
      let letters = batch.deadLetters
      if let deadLetters {
        try persist("writing dead letters", &counts.retries, isGivenUp) { try deadLetters.send(letters) }
      }
      counts.deadLetters += letters.count
      for letter in letters { log.warning(Self.line(letter)) }
    }
    let done = Instant.now
    log.debug(
      "applied a batch: records=\(counts.records) changes=\(counts.changes) deliveries=\(counts.deliveries) "
        + "facts_us=\(haveFacts.microseconds(since: began)) views_us=\(haveViews.microseconds(since: haveFacts)) "
        + "rest_us=\(done.microseconds(since: haveViews))")
    return counts
  }

  /// Tries a step until it succeeds, fails for good or is given up. Trouble that may pass is waited out without limit (SPEC 7).
  /// - Parameter records: how many it is about and may be split into.
  private func persist<T>(
    _ step: String, records: Int = 1, _ retries: inout Int, _ isGivenUp: @escaping @Sendable () -> Bool,
    _ body: () throws -> T
  ) throws(Failure) -> T {
    var failures = 0
    while true {
      state.withLock { $0.step = (step, .now) }
      defer { state.withLock { $0.step = nil } }
      do {
        let result = try body()
        state.withLock { state in
          if state.trouble != nil { log.info("\(step): works again") }
          state.trouble = nil
        }
        return result
      } catch {
        if let failure = error as? Failure { throw failure }
        let message = "\(step): \(error)"
        let kind = Self.kind(of: error)
        failures += 1
        let decision = policy.decide(kind, records: records, failures: failures)
        // Splitting is not for a single step to do, nor is what comes of a value that is refused.
        var isSplit = kind == .refusedValue
        if case .split = decision { isSplit = true }
        if isSplit {
          log.debug("\(message)")
          throw .tooMuch(kind, message)
        }
        guard case .retry(let time, let isPaused) = decision else { throw .final(message) }
        retries += 1
        state.withLock { $0.trouble = Trouble(message: message, isFetchingPaused: isPaused) }
        log.warning("\(message); trying again in \(time.millisecondsFromNow) ms")
        try wait(until: time, isGivenUp)
      }
    }
  }

  private func wait(until time: Instant, _ isGivenUp: () -> Bool) throws(Failure) {
    while true {
      if isGivenUp() { throw .givenUp }
      let left = time.millisecondsFromNow
      if left == 0 { return }
      // Woken every now and then to see whether anybody still waits for this.
      pause(milliseconds: min(50, left))
    }
  }

  private static func kind(of error: any Error) -> FailurePolicy.Failure {
    switch error {
    case let error as StoreError:
      switch error.code {
      case .overdue: .overdue
      case .refusedValue: .refusedValue
      case .refused: .refused
      default: error.isTransient ? .passing : .lasting
      }
    // What Kafka refuses to take now it may take later: nothing is lost by asking again, and everything by giving up.
    case is KafkaError: .passing
    default: .lasting
    }
  }

  private static func line(_ letter: DeadLetter) -> String {
    let record = letter.record
    let trace = letter.traceparent.map { " traceparent=\($0)" } ?? ""
    return "dead letter: topic=\(record.partition.topic) partition=\(record.partition.partition) "
      + "offset=\(record.offset) reason=\(letter.reason.reason.rawValue) (\(letter.reason.detail))\(trace)"
  }
}
