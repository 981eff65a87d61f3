package import Kafka
package import SocialEvents

/// The topic of dead letters as it is when this is made: what lies in it, and what has been dealt with.
///
/// What has been dealt with is kept as the offsets of two groups that have no members: one of all such letters, and one of those
/// among them that were discarded. Reading assigns partitions explicitly
/// and moves nothing, least of all the workers' offsets. Two commands at once may each miss what the other notes meanwhile:
/// then letters count as open that are not, and sending one of them back again does no harm.
package final class DeadLetterTopic {
  /// The groups' names. Like all groups, they are kept apart by topic, so that one pair serves all deployments.
  package static let redriveGroup = "fanout-redrive"
  package static let discardGroup = "fanout-discard"

  package enum State: String, CaseIterable, Sendable {
    case open, redriven, discarded
  }

  package let topics: Topics
  private let redriveReader: Consumer
  private let discardReader: Consumer
  /// What each partition holds: from its first offset to the end that was seen.
  package let extent: [TopicPartition: Range<Int64>]
  private var redriven: [TopicPartition: OffsetSet]
  private var discarded: [TopicPartition: OffsetSet]
  /// For each group, how many letters of a partition it has no room for.
  private var overflow: [String: [TopicPartition: Int64]] = [:]

  package init(_ kafka: ClientConfiguration, topics: Topics) throws(KafkaError) {
    self.topics = topics
    redriveReader = try Consumer(kafka, group: Self.redriveGroup, commitsStoredOffsets: false)
    discardReader = try Consumer(kafka, group: Self.discardGroup, commitsStoredOffsets: false)
    let partitions = try redriveReader.partitions(of: [topics.deadLetters])
    extent = try redriveReader.watermarks(partitions).mapValues { $0.low..<max($0.low, $0.high) }
    redriven = try redriveReader.committedWithNotes(partitions).mapValues { OffsetSet($0) }
    discarded = try discardReader.committedWithNotes(partitions).mapValues { OffsetSet($0) }
  }

  package func close() {
    redriveReader.close(timeoutMilliseconds: 2000)
    discardReader.close(timeoutMilliseconds: 2000)
  }

  package func state(of id: LetterID) -> State {
    let partition = place(id.partition)
    if discarded[partition]?.contains(id.offset) ?? false { return .discarded }
    return redriven[partition]?.contains(id.offset) ?? false ? .redriven : .open
  }

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
        var settled = redriven[partition] ?? OffsetSet()
        settled.formUnion(discarded[partition] ?? OffsetSet())
        let first = min(settled.firstMissing(from: range.lowerBound), range.upperBound)
        ranges[partition] = first..<range.upperBound
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

  /// Reads all records of the ranges, each partition's in order.
  /// - Parameters:
  ///   - atOnce: the most records in memory at a time. Large ones are fewer.
  ///   - body: is given some records, and for each partition the offset up to which there are no others. Returning false ends
  ///     the reading.
  package func read(
    _ ranges: [TopicPartition: Range<Int64>], atOnce: Int = 1000,
    _ body: ([StoredLetter], _ passed: [TopicPartition: Int64]) throws -> Bool
  ) throws {
    var open = ranges.filter { !$0.value.isEmpty }
    try redriveReader.assign(open.map { ($0.key, .offset($0.value.lowerBound)) })
    defer { try? redriveReader.assign([]) }
    // What is on its way comes within this time, or the brokers are away: this command ends then, unlike a worker.
    let patience = 30_000
    var deadline = Instant.after(milliseconds: patience)
    while !open.isEmpty {
      var letters: [StoredLetter] = []
      var bytes = 0
      let count = try redriveReader.poll(
        max: atOnce, timeoutMilliseconds: 200, mayTake: { bytes < 4 << 20 ? 64 : 0 },
        { record in
          guard let range = open[record.topicPartition], record.offset < range.upperBound else { return }
          bytes += record.valueCount + record.keyCount
          letters.append(StoredLetter(record.owned()))
        })
      var passed: [TopicPartition: Int64] = [:]
      for (partition, range) in open {
        guard let position = redriveReader.position(partition), position > range.lowerBound else { continue }
        passed[partition] = min(position, range.upperBound)
        open[partition] = position >= range.upperBound ? nil : position..<range.upperBound
      }
      // Also when nothing came, so that it can end the reading.
      guard try body(letters, passed) else { return }
      if count > 0 || !passed.isEmpty {
        deadline = .after(milliseconds: patience)
      } else if Instant.now > deadline {
        throw redriveReader.problem.map { WorkerError($0.description) }
          ?? WorkerError("\(topics.deadLetters) can't be read to its end: no record for \(patience / 1000) s")
      }
    }
  }

  // MARK: Noting what was dealt with

  /// Letters that were dealt with and are not noted as such, as there were too many with open ones between them.
  package var forgotten: [TopicPartition: Int64] {
    overflow.values.reduce(into: [:]) { all, one in all.merge(one) { max($0, $1) } }
  }

  /// Takes note that letters were sent back, or need not be. `commit` keeps it.
  func noteRedriven(_ offsets: OffsetSet, of partition: TopicPartition) {
    redriven[partition, default: OffsetSet()].formUnion(offsets)
  }

  /// Commits what was noted of these partitions as the progress of redriving.
  func commitRedriven(_ partitions: some Sequence<TopicPartition>) throws(KafkaError) {
    try commit(redriven, partitions, redriveReader, Self.redriveGroup)
  }

  /// Marks letters as not worth sending back, for which they are also noted as dealt with.
  package func discard(_ letters: [TopicPartition: OffsetSet]) throws(KafkaError) {
    for (partition, offsets) in letters { discarded[partition, default: OffsetSet()].formUnion(offsets) }
    try commit(discarded, letters.keys, discardReader, Self.discardGroup)
    for (partition, offsets) in letters { noteRedriven(offsets, of: partition) }
    try commitRedriven(letters.keys)
  }

  private func commit(
    _ sets: [TopicPartition: OffsetSet], _ partitions: some Sequence<TopicPartition>, _ consumer: Consumer,
    _ group: String
  ) throws(KafkaError) {
    var commits: [TopicPartition: CommittedOffset] = [:]
    for partition in partitions {
      guard let set = sets[partition] else { continue }
      let (commit, left) = set.commit(from: extent[partition]?.lowerBound ?? 0)
      commits[partition] = commit
      overflow[group, default: [:]][partition] = left > 0 ? left : nil
    }
    try consumer.commit(commits, timeoutMilliseconds: 30_000)
  }
}
