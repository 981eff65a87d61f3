package import Kafka
package import SocialEvents

/// The topic of dead letters as it is when this is made: what lies in it, and what has been dealt with.
///
/// What has been dealt with is kept as the offsets of a group that has no members. Reading assigns partitions explicitly
/// and moves nothing, least of all the workers' offsets. Two commands at once may each miss what the other notes meanwhile:
/// then letters count as open that are not, and sending one of them back again does no harm.
package final class DeadLetterTopic {
  /// The group's name. Like all groups, it is kept apart by topic, so that one serves all deployments.
  package static let group = "fanout-redrive"

  package let topics: Topics
  private let reader: Consumer
  /// What each partition holds: from its first offset to the end that was seen.
  package let extent: [TopicPartition: Range<Int64>]
  private var states: [TopicPartition: LetterStates]
  /// Where something was noted since the last commit.
  private var uncommitted: Set<TopicPartition> = []
  /// What the notes of partitions have no room for.
  package private(set) var losses: [TopicPartition: LetterStates.Losses] = [:]

  package init(_ kafka: ClientConfiguration, topics: Topics) throws(KafkaError) {
    self.topics = topics
    var kafka = kafka
    kafka.properties.insert(("queued.min.messages", String(Self.fetchedAhead)), at: 0)
    reader = try Consumer(kafka, group: Self.group, commitsStoredOffsets: false)
    let partitions = try reader.partitions(of: [topics.deadLetters])
    extent = try reader.watermarks(partitions).mapValues { $0.low..<max($0.low, $0.high) }
    states = try reader.committedWithNotes(partitions).mapValues { LetterStates($0) }
  }

  package func close() { reader.close(timeoutMilliseconds: 2000) }

  package func state(of id: LetterID) -> LetterState { states[place(id.partition)]?[id.offset] ?? .open }

  package func place(_ partition: Int32) -> TopicPartition {
    TopicPartition(topic: topics.deadLetters, partition: partition)
  }

  // MARK: Reading

  /// The ranges that hold all letters of a selection.
  /// - Throws: `WorkerError` for an id that can't be there.
  package func ranges(of selection: LetterSelection) throws(WorkerError) -> [TopicPartition: Range<Int64>] {
    var ranges: [TopicPartition: Range<Int64>] = [:]
    switch selection {
    case .open:
      for (partition, range) in extent {
        let first = states[partition]?.firstOpen(from: range.lowerBound) ?? range.lowerBound
        ranges[partition] = min(first, range.upperBound)..<range.upperBound
      }
    case .ids(let ids):
      for id in ids.sorted() {
        let partition = place(id.partition)
        guard let range = extent[partition] else {
          throw WorkerError(
            "there is no dead letter \(id): \(topics.deadLetters) has \(extent.count) partitions, numbered from 0")
        }
        guard range.contains(id.offset) else { throw missing(id) }
        let start = ranges[partition]?.lowerBound ?? id.offset
        ranges[partition] = start..<id.offset + 1
      }
    }
    return ranges.filter { !$0.value.isEmpty }
  }

  package func missing(_ id: LetterID) -> WorkerError {
    let range = extent[place(id.partition)] ?? 0..<0
    let held = range.isEmpty ? "nothing" : "the offsets \(range.lowerBound) to \(range.upperBound - 1)"
    return WorkerError("there is no dead letter \(id): partition \(id.partition) holds \(held)")
  }

  /// Whether a letter is one of the selection, as far as is known by now.
  package func takes(_ letter: StoredLetter, _ selection: LetterSelection) -> Bool {
    switch selection {
    case .ids(let ids): ids.contains(letter.id)
    case .open(let filter): state(of: letter.id) == .open && filter.takes(letter)
    }
  }

  private static let mostBytes = 4 << 20
  /// How many letters of a partition Kafka's client tries to have ready. It does not count the bytes of their headers.
  private static let fetchedAhead = 4

  /// Reads all records of the ranges, each partition's in order.
  /// - Parameters:
  ///   - atOnce: the most records in memory at a time. Large ones are fewer: about 4 MiB.
  ///   - body: is given some records, and for each partition the offset up to which there are no others. Returning false ends
  ///     the reading.
  package func read(
    _ ranges: [TopicPartition: Range<Int64>], atOnce: Int = 1000,
    _ body: ([StoredLetter], _ passed: [TopicPartition: Int64]) throws -> Bool
  ) throws {
    var open = ranges.filter { !$0.value.isEmpty }
    try reader.assign(open.map { ($0.key, .offset($0.value.lowerBound)) })
    defer { try? reader.assign([]) }
    // What is on its way comes within this time, or the brokers are away: this command ends then, unlike a worker.
    let patience = 30_000
    var deadline = Instant.after(milliseconds: patience)
    // So far. What is asked for is counted only when it has come, so it should be no more than there is room for.
    var largest = 64 << 10
    while !open.isEmpty {
      var letters: [StoredLetter] = []
      var bytes = 0
      var count: Int
      var all = 0
      repeat {
        // Few at a time, so that Kafka's client is asked to go on fetching as soon as it has run empty.
        count = try reader.poll(
          max: max(1, min(Self.fetchedAhead, atOnce - all, (Self.mostBytes - bytes) / largest)),
          timeoutMilliseconds: all == 0 ? 200 : 20
        ) { record in
          guard let range = open[record.topicPartition], record.offset < range.upperBound else { return }
          let letter = StoredLetter(record.owned())
          bytes += letter.record.byteCount
          largest = max(largest, letter.record.byteCount)
          letters.append(letter)
        }
        all += count
      } while count > 0 && all < atOnce && bytes < Self.mostBytes
      var passed: [TopicPartition: Int64] = [:]
      for (partition, range) in open {
        guard let position = reader.position(partition), position > range.lowerBound else { continue }
        passed[partition] = min(position, range.upperBound)
        open[partition] = position >= range.upperBound ? nil : position..<range.upperBound
      }
      // Also when nothing came, so that it can end the reading.
      guard try body(letters, passed) else { return }
      if all > 0 || !passed.isEmpty {
        deadline = .after(milliseconds: patience)
      } else if Instant.now > deadline {
        throw reader.problem.map { WorkerError($0.description) }
          ?? WorkerError("\(topics.deadLetters) can't be read to its end: no record for \(patience / 1000) s")
      }
    }
  }

  // MARK: Noting what was dealt with

  /// Takes note of what was done with a letter. ``commit()`` keeps it.
  package func note(_ id: LetterID, _ state: LetterState) {
    note(id.offset..<id.offset + 1, of: place(id.partition), state)
  }

  func note(_ offsets: Range<Int64>, of partition: TopicPartition, _ state: LetterState) {
    states[partition, default: LetterStates()].set(offsets, to: state)
    uncommitted.insert(partition)
  }

  /// Has the brokers keep what was noted, as far as they have room.
  package func commit() throws(KafkaError) {
    var commits: [TopicPartition: CommittedOffset] = [:]
    for partition in uncommitted {
      guard let states = states[partition] else { continue }
      (commits[partition], losses[partition]) = states.commit(from: extent[partition]?.lowerBound ?? 0)
    }
    try reader.commit(commits, timeoutMilliseconds: 30_000)
    uncommitted = []
  }
}
