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
    /// The store refused a value: applied one by one, all other records will be taken.
    case refused(String)
    /// The store or Kafka refused, and trying again would not help.
    case final(String)

    var description: String {
      switch self {
      case .givenUp: "given up"
      case .refused(let message), .final(let message): message
      }
    }
  }

  private let store: any Store
  private let handover: any SliceHandover
  /// Nil: records that can't be applied are only logged.
  private let deadLetters: Outlet?
  private let singles: SingleRecords
  private let sliceSize: Int
  private let beforeSlice: @Sendable () -> Void
  private let log: Log
  /// What a step that is being retried waits for; nil while all is well.
  private let troubleState = Mutex<String?>(nil)

  /// - Parameter beforeSlice: called before each slice that came as a task; may wait.
  init(
    store: any Store, handover: any SliceHandover, deadLetters: Outlet?, singles: SingleRecords, sliceSize: Int,
    beforeSlice: @escaping @Sendable () -> Void, log: Log
  ) {
    self.beforeSlice = beforeSlice
    self.singles = singles
    self.store = store
    self.handover = handover
    self.deadLetters = deadLetters
    self.sliceSize = sliceSize
    self.log = log
  }

  var trouble: String? { troubleState.withLock { $0 } }

  /// - Parameter isGivenUp: asked between tries, and while waiting for the next.
  func apply(_ batch: Batch, isGivenUp: @escaping @Sendable () -> Bool) throws(Failure) -> WorkerCounts {
    do {
      return try applyWhole(batch, isGivenUp: isGivenUp)
    } catch {
      guard case .refused(let message) = error else { throw error }
      log.warning("\(message); the \(batch.recordCount) records of the batch are applied one by one")
      return try applyOneByOne(batch, isGivenUp: isGivenUp)
    }
  }

  /// How often a record that the store refuses is tried alone before it becomes a dead letter.
  private static let triesAlone = 3

  /// Applies each record of the batch by itself, so that one that the store refuses holds up no other (SPEC 7).
  private func applyOneByOne(
    _ batch: Batch, isGivenUp: @escaping @Sendable () -> Bool
  ) throws(Failure) -> WorkerCounts {
    var counts = WorkerCounts()
    var retries = 0
    try persist("reading a batch again", &retries, isGivenUp) {
      counts = WorkerCounts()
      try self.singles.read(batch, isGivenUp: isGivenUp) { single, record in
        counts.add(try self.applyAlone(single, record, isGivenUp: isGivenUp))
      }
    }
    counts.retries += retries
    return counts
  }

  private func applyAlone(
    _ single: Batch, _ record: OwnedRecord, isGivenUp: @escaping @Sendable () -> Bool
  ) throws(Failure) -> WorkerCounts {
    var backoff = Backoff()
    var retries = 0
    while true {
      do {
        var counts = try applyWhole(single, isGivenUp: isGivenUp)
        counts.retries += retries
        return counts
      } catch {
        guard case .refused(let message) = error else { throw error }
        retries += 1
        if retries == Self.triesAlone {
          var letter = Batch()
          letter.recordCount = 1
          letter.deadLetters = [singles.deadLetter(record, message)]
          return try applyWhole(letter, isGivenUp: isGivenUp)
        }
        pause(milliseconds: backoff.nextMilliseconds())
      }
    }
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
      counts.changes = try persist("committing facts", &counts.retries, isGivenUp) { try self.store.commitFacts(facts) }
      haveFacts = .now
      let derivation = try persist("deriving views", &counts.retries, isGivenUp) {
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
  private func persist<T>(
    _ step: String, _ retries: inout Int, _ isGivenUp: @escaping @Sendable () -> Bool, _ body: () throws -> T
  ) throws(Failure) -> T {
    var backoff = Backoff()
    while true {
      do {
        let result = try body()
        troubleState.withLock { trouble in
          if trouble != nil { log.info("\(step): works again") }
          trouble = nil
        }
        return result
      } catch {
        if let failure = error as? Failure { throw failure }
        let message = "\(step): \(error)"
        if let error = error as? StoreError, error.code == .refusedValue { throw .refused(message) }
        guard Self.mayPass(error) else { throw .final(message) }
        retries += 1
        troubleState.withLock { $0 = message }
        let wait = backoff.nextMilliseconds()
        log.warning("\(message); trying again in \(wait) ms")
        // Woken every now and then to see whether anybody still waits for this.
        let end = Instant.after(milliseconds: wait)
        while Instant.now < end {
          if isGivenUp() { throw .givenUp }
          pause(milliseconds: min(50, end.millisecondsFromNow))
        }
        if isGivenUp() { throw .givenUp }
      }
    }
  }

  private static func mayPass(_ error: any Error) -> Bool {
    switch error {
    case let error as StoreError: error.isTransient
    // What Kafka refuses to take now it may take later: nothing is lost by asking again, and everything by giving up.
    case is KafkaError: true
    default: false
    }
  }

  private static func line(_ letter: DeadLetter) -> String {
    let record = letter.record
    let trace = letter.traceparent.map { " traceparent=\($0)" } ?? ""
    return "dead letter: topic=\(record.partition.topic) partition=\(record.partition.partition) "
      + "offset=\(record.offset) reason=\(letter.reason.reason.rawValue) (\(letter.reason.detail))\(trace)"
  }
}
