internal import Kafka
internal import SocialEvents

/// The consumer's thread of a worker: polls, gathers batches, hands them to the lanes, and stores the offsets of what is done.
/// It alone owns the consumer.
final class ConsumeLoop {
  private let configuration: WorkerConfiguration
  private let lanes: Lanes
  private let outlet: Outlet
  private let shared: SharedProgress
  private let log: Log
  private var share: Share
  private var brokers: BrokerWatch
  private var isReady = false
  /// For each partition, up to where records were applied in this run.
  private var applied: [TopicPartition: Int64] = [:]
  private var nextLookAtEnds = Instant.now
  private var failure: WorkerError?
  /// Why the client has to be replaced.
  private var replacement: String?
  private var catchUp: CatchUp?
  private var hasBegun = false
  /// Since when the loop can't have been asleep: it has only waited for as long as it wanted to.
  private var awakeSince = Instant.now
  /// Whether what was fetched is not this worker's any more.
  private var isStale = false

  /// A revoke waits this long for work at hand, in milliseconds: well within the time that the group waits for its members.
  private static let revokePatience = 30_000

  init(
    _ configuration: WorkerConfiguration, lanes: Lanes, outlet: Outlet, shared: SharedProgress, log: Log
  ) {
    self.configuration = configuration
    self.lanes = lanes
    self.outlet = outlet
    self.shared = shared
    self.log = log
    share = Share(tasks: configuration.topics.tasks)
    brokers = BrokerWatch(log: log)
  }

  func run() throws {
    // However it ends.
    defer { setReady(false, "stopping") }
    var backoff = Backoff(firstMilliseconds: 500, limitMilliseconds: 30_000)
    while true {
      let consumer = try Consumer(configuration.kafka, group: configuration.group)
      guard try TopicsWait.wait(for: configuration, consumer, shared, log) else { return try stop(consumer) }
      try begin(consumer)
      guard let reason = try work(consumer) else { return try stop(consumer) }
      log.warning("\(reason). A new Kafka client takes over")
      abandon(consumer)
      shared.pauseUnlessStopped(milliseconds: backoff.nextMilliseconds())
    }
  }

  private func begin(_ consumer: Consumer) throws {
    let topics = configuration.topics
    if !hasBegun {
      try outlet.warm()
      if configuration.untilCaughtUp { catchUp = try CatchUp(topics: topics, consumer: consumer) }
      log.info(
        "worker started: group=\(configuration.group) brokers=\(configuration.kafka.brokers) topics=\(topics.prefix)* "
          + "librdkafka=\(Librdkafka.version)")
      hasBegun = true
    }
    try consumer.subscribe(topics.events + [topics.tasks], handler: self)
  }

  /// Works until a stop is asked for, or all is caught up.
  /// - Returns: why the client has to be replaced, nil if the work is over.
  private func work(_ consumer: Consumer) throws -> String? {
    var watchdog = Watchdog(timeout: configuration.stallTimeout, log: log)
    let session = consumer.sessionTimeout
    awakeSince = .now
    while !shared.isStopRequested {
      takeOutcomes(consumer)
      if let failure { throw failure }
      if let replacement { return replacement }
      do {
        if let fatal = consumer.fatalError { throw fatal }
        brokers.look(at: consumer)
        reportReadiness()
        lanes.submitIfReady(age: configuration.batchAge, epoch: share.epoch)
        storeEnds(consumer)
        if share.isGiven, catchUp != nil {
          if try catchUp?.isDone(consumer, applied: applied, isQuiet: lanes.isQuiet) == true { return nil }
          // It asks the brokers, who may take as long.
          awakeSince = .now
        }
        try share.pauseTasks(lanes.areTasksStuck, consumer)
        if mustWait {
          try waitForRoom(consumer)
        } else {
          if share.areEventsPaused { try resumeEvents(consumer) }
          try poll(consumer, timeout: lanes.isQuiet ? 100 : configuration.batchAge)
        }
        let time = Int(Instant.now.seconds(since: awakeSince) * 1000)
        if time > session { return dropStale(asleep: time, session) }
        let isFetching = share.isGiven && !share.areEventsPaused && brokers.problem == nil
        if let reason = watchdog.look(at: consumer, isFetching: isFetching) { return reason }
        awakeSince = .now
      } catch let error as KafkaError {
        // "Fatal" alone says nothing.
        let error = consumer.fatalError ?? error
        if error.isGroupConfigurationFault || configuration.untilCaughtUp && !error.isFatal { throw error }
        if error.isFencedMember {
          throw WorkerError("\(error). Give each worker a group.instance.id of its own, or none")
        }
        return "\(error)"
      }
    }
    return nil
  }

  private func stop(_ consumer: Consumer) throws {
    shared.requestStop(gracePeriod: configuration.gracePeriod)
    setReady(false, "stopping")
    _ = finishWork(consumer)
    // Closing revokes the partitions: the handler commits what is done.
    let leaving = min(5000, shared.stop?.leave.millisecondsFromNow ?? 5000)
    if !consumer.close(timeoutMilliseconds: leaving) {
      log.warning("the group could not be left in time; the brokers will notice the absence themselves")
    }
    if let failure { throw failure }
    log.info("worker stopped: \(shared.counts) peak_memory_mb=\(peakMemoryKilobytes() / 1024)")
  }

  // MARK: Replacing the client

  /// Whoever slept through the whole session, as in a paused container, has lost the partitions without knowing it yet. What was
  /// fetched before is somebody else's now.
  private func dropStale(asleep: Int, _ session: Int) -> String {
    isStale = true
    lanes.discardWaiting()
    lanes.forget()
    return "this worker slept for \(asleep) ms, longer than its session of \(session) ms; it drops what it had fetched"
  }

  /// Gives the consumer up, with what it has fetched: the next one gets it again.
  private func abandon(_ consumer: Consumer) {
    setReady(false, "the Kafka client is being replaced")
    if !consumer.close(timeoutMilliseconds: 5000) {
      log.warning("the old client could not be closed in time; it goes when its session ends")
    }
    lanes.discardWaiting()
    forgetAssignment()
    isStale = false
    replacement = nil
    brokers.forget()
  }

  // MARK: Gathering

  private func poll(_ consumer: Consumer, timeout: Int) throws(KafkaError) {
    do {
      try consumer.poll(
        max: 1000, timeoutMilliseconds: timeout, lingerMilliseconds: configuration.batchAge,
        mayTake: { lanes.room }, { lanes.add($0, of: $0.topicPartition) })
    } catch {
      if error.isFatal || error.isGroupConfigurationFault { throw error }
      // The client goes on trying by itself; `Watchdog` looks whether it does.
      log.warning("\(error)")
    }
  }

  /// Whether a lane has a full batch at hand and one that waits, or the store or the brokers are away.
  private var mustWait: Bool { lanes.isStuck || lanes.isFetchingPaused }

  /// Lets Kafka wait, and stays in the group.
  private func waitForRoom(_ consumer: Consumer) throws(KafkaError) {
    let deadline = Instant.after(milliseconds: 500)
    while mustWait, failure == nil, Instant.now < deadline {
      lanes.waitForOutcome(until: deadline)
      takeOutcomes(consumer)
      reportReadiness()
      lanes.submitIfReady(age: configuration.batchAge, epoch: share.epoch)
    }
    if !mustWait { return }
    if !share.areEventsPaused {
      let trouble = lanes.troubles.first.map { ": \($0.message)" } ?? ""
      log.debug("fetching pauses\(trouble)")
      try share.pauseEvents(consumer)
    }
    // Serves the group's callbacks; a paused consumer brings no records, and one that slipped through is not lost.
    try poll(consumer, timeout: 0)
  }

  private func reportReadiness() {
    if let trouble = lanes.troubles.first {
      setReady(false, trouble.message)
    } else if let problem = brokers.problem {
      setReady(false, "Kafka can't be used: \(problem)")
    } else {
      setReady(share.isGiven, "no share of the partitions yet")
    }
  }

  private func setReady(_ isReady: Bool, _ reason: String) {
    if isReady == self.isReady { return }
    self.isReady = isReady
    log.info(isReady ? "ready" : "not ready: \(reason)")
    configuration.readinessChanged?(isReady)
  }

  private func resumeEvents(_ consumer: Consumer) throws(KafkaError) {
    try share.resumeEvents(consumer)
    log.debug("fetching goes on")
  }

  // MARK: Acknowledging

  private func takeOutcomes(_ consumer: Consumer) {
    for outcome in lanes.takeOutcomes() {
      switch outcome.result {
      case .success(let counts):
        shared.add(counts)
        applied.merge(outcome.nextOffsets) { max($0, $1) }
        guard outcome.epoch == share.epoch else { continue }
        for (partition, next) in outcome.nextOffsets { share.store(next, of: partition, consumer, log) }
      case .failure(.givenUp): break
      case .failure(.tooMuch(_, let message)), .failure(.final(let message)): failure = failure ?? WorkerError(message)
      }
    }
  }

  private func storeEnds(_ consumer: Consumer) {
    guard share.isGiven, lanes.isQuiet, Instant.now >= nextLookAtEnds else { return }
    nextLookAtEnds = .after(milliseconds: 200)
    share.storeEnds(consumer, log)
  }

  // MARK: Stopping

  /// Finishes what is at hand, as long as a stop or a revoke allows.
  /// - Returns: whether all is done.
  private func finishWork(_ consumer: Consumer) -> Bool {
    let patience = Instant.after(milliseconds: Self.revokePatience)
    var isDone = false
    while true {
      // A stop may be asked for while a revoke waits here.
      let deadline = min(patience, shared.stop?.work ?? patience)
      lanes.submitRest(epoch: share.epoch)
      isDone = lanes.waitUntilQuiet(until: min(deadline, .after(milliseconds: 100)))
      if isDone || Instant.now >= deadline { break }
    }
    takeOutcomes(consumer)
    return isDone
  }
}

extension ConsumeLoop: RebalanceHandler {
  func assigned(_ partitions: [TopicPartition], by consumer: Consumer) {
    awakeSince = .now
    share.begin()
    shared.countRebalance()
    log.info("assigned \(partitions.count) partitions")
  }

  /// Finishes what is at hand and commits it before the partitions go to others (SPEC 7, "partitions are revoked").
  func revoked(_ partitions: [TopicPartition], by consumer: Consumer) {
    if isStale { return lost(partitions, by: consumer) }
    defer { awakeSince = .now }
    let isDone = finishWork(consumer)
    do {
      let left = shared.stop?.leave.millisecondsFromNow ?? 5000
      try consumer.commitStored(timeoutMilliseconds: min(5000, max(100, left)))
    } catch {
      log.warning("committing before partitions are given up: \(error); their next owner repeats some records")
    }
    if !isDone {
      log.warning("the work at hand was not finished in time; the partitions' next owner repeats it")
      lanes.discardWaiting()
      // Of partitions that stay here, records at hand would be passed over: a new client gets them again.
      if partitions.count < consumer.assignment.count {
        replacement = "the work at hand could not be finished before partitions were given up"
      }
    }
    forgetAssignment()
    log.info("gave up \(partitions.count) partitions")
  }

  private func forgetAssignment() {
    lanes.forget()
    share.end()
  }

  /// The partitions have been given to others already: nothing can be committed.
  func lost(_ partitions: [TopicPartition], by consumer: Consumer) {
    lanes.discardWaiting()
    forgetAssignment()
    log.warning("lost \(partitions.count) partitions; their next owner repeats what was not committed")
  }
}
