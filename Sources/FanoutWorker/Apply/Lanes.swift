internal import FanoutStore
internal import Kafka
internal import SocialEvents

/// The lanes of a worker or a replay: some for events, side by side, and one for tasks, so that no event waits behind a large
/// fan-out (SPEC 6).
///
/// All records of a partition take the same lane, so its offsets are acknowledged in their order. What is about the same user
/// may be on several lanes at once, as it may be on several workers.
final class Lanes {
  private let events: [Lane]
  private let tasks: Lane
  private var all: [Lane] { events + [tasks] }
  private let tasksTopic: String
  private let outcomes = Monitor<[ApplyThread.Outcome]>([])
  private let appliers: [BatchApplier]

  /// A task stands for some thousand feed rows, so a few of them are a batch.
  private static let tasksInBatch = 32

  init(
    _ configuration: WorkerConfiguration, store: any Store, handover: any SliceHandover, deadLetters: Outlet?,
    policy: FailurePolicy, log: Log
  ) throws(WorkerError) {
    let topics = configuration.topics
    tasksTopic = topics.tasks
    let courtesy = Courtesy()
    let newApplier = { (beforeSlice: @escaping @Sendable () -> Void) in
      BatchApplier(
        store: store, handover: handover, deadLetters: deadLetters, reader: BatchReader(configuration),
        sliceSize: configuration.sliceSize, beforeSlice: beforeSlice, policy: policy, log: log)
    }
    var lanes: [Lane] = []
    var appliers: [BatchApplier] = []
    for _ in 0..<configuration.usedWriters {
      let applier = newApplier {}
      appliers.append(applier)
      let thread = try ApplyThread(applier, outcomes: outcomes) { isApplying in
        if isApplying { courtesy.eventsBegin() } else { courtesy.eventsEnd() }
      }
      lanes.append(
        Lane(
          BatchBuilder(topics: topics, group: configuration.group), thread,
          maxRecords: configuration.maxBatchRecords, maxBytes: configuration.maxBatchBytes))
    }
    let applier = newApplier { courtesy.giveWay() }
    events = lanes
    self.appliers = appliers + [applier]
    tasks = Lane(
      BatchBuilder(topics: topics, group: configuration.group), try ApplyThread(applier, outcomes: outcomes),
      maxRecords: Self.tasksInBatch, maxBytes: configuration.maxBatchBytes)
  }

  // MARK: Gathering

  func add(_ record: borrowing ConsumedRecord, of partition: TopicPartition) {
    if partition.topic == tasksTopic { return tasks.add(record, of: partition) }
    events[Int(partition.partition) % events.count].add(record, of: partition)
  }

  /// How many more records there is room for, whichever event lane they take.
  var room: Int { events.map(\.room).min() ?? 0 }
  /// Whether an event lane can take nothing before one of its batches is done.
  var isStuck: Bool { events.contains(where: \.isStuck) }
  var areTasksStuck: Bool { tasks.isStuck }
  /// Whether nothing is at hand, and the outcome of all that was has been taken.
  var isQuiet: Bool { all.allSatisfy(\.isQuiet) && outcomes.withLock { $0.isEmpty } }
  /// What steps that are being retried wait for.
  var troubles: [BatchApplier.Trouble] { appliers.compactMap(\.trouble) }
  /// Whether a step has failed so often that nothing more should be fetched.
  var isFetchingPaused: Bool { troubles.contains(where: \.isFetchingPaused) }

  func submitIfReady(age: Int?, epoch: Int) { for lane in all { lane.submitIfReady(age: age, epoch: epoch) } }
  func submitRest(epoch: Int) { for lane in all { lane.submitRest(epoch: epoch) } }

  // MARK: What is done

  func takeOutcomes() -> [ApplyThread.Outcome] {
    outcomes.withLock { outcomes in
      defer { outcomes = [] }
      return outcomes
    }
  }

  /// Waits until a batch is done.
  func waitForOutcome(until deadline: Instant) { _ = outcomes.wait(until: deadline) { $0.isEmpty ? nil : () } }

  /// Whether all that was handed over is done by the deadline, and nothing is left to hand over.
  func waitUntilQuiet(until deadline: Instant) -> Bool {
    all.reduce(true) { isQuiet, lane in lane.waitUntilQuiet(until: deadline) && isQuiet }
  }

  // MARK: Giving up

  func forget() { for lane in all { lane.forget() } }
  func discardWaiting() { for lane in all { lane.discardWaiting() } }
  func close(until deadline: Instant) { for lane in all { lane.close(until: deadline) } }
}
