package import Kafka
internal import SocialEvents
internal import Synchronization

/// Sends dead letters back to the topics that they came from (SPEC 8, `dead-letters redrive`).
///
/// It reads what was there when it began, and ends. A letter is noted as redriven, as progress of a consumer group, only after
/// the brokers have acknowledged its record: killed at any instruction and begun again, every letter is sent at least once, and
/// what is sent twice changes nothing.
package final class Redrive: Sendable {
  package struct Options: Sendable {
    package var selection: LetterSelection
    /// A letter whose record was sent back so often already is left where it is.
    package var maxRedrives = 3
    /// Records a second; nil for as many as there are.
    package var rate: Int?
    /// Finds out what would be done, and does nothing.
    package var isDryRun = false

    package init(_ selection: LetterSelection) { self.selection = selection }
  }

  package struct Progress: Sendable {
    /// Offsets passed and offsets to pass, over all partitions.
    package var done: Int64 = 0
    package var total: Int64 = 0
    package var seconds = 0.0
    /// Letters sent back, or in a dry run, those that would be; by the topic that they go to.
    package var redriven: [String: Int] = [:]
    package var left = 0
    /// How many of those left would go to a topic that is not there; by its name.
    package var missingTopics: [String: Int] = [:]

    package var redrivenCount: Int { redriven.values.reduce(0, +) }
    package var remainingSeconds: Double? {
      done > 0 && seconds > 0 ? Double(total - done) * seconds / Double(done) : nil
    }
  }

  /// A letter that was not sent back, and why.
  package struct Left: Sendable {
    package let id: LetterID
    package let reason: String
  }

  private let kafka: ClientConfiguration
  private let options: Options
  private let isStopped = Atomic<Bool>(false)

  package init(_ kafka: ClientConfiguration, _ options: Options) {
    self.kafka = kafka
    self.options = options
  }

  /// Asks it to end after the letters at hand. Any thread.
  package func stop() { isStopped.store(true, ordering: .releasing) }

  private var mustStop: Bool { isStopped.load(ordering: .acquiring) }

  /// Works on the calling thread until all letters are sent back.
  /// - Parameters:
  ///   - onLeft: called for each letter that stays, except for those whose topic is missing.
  ///   - report: called about once a second, and at the end.
  /// - Returns: the last progress; `done` is less than `total` only if it was stopped.
  /// - Throws: `WorkerError`, `KafkaError`. What was acknowledged until then is noted.
  @discardableResult
  package func run(
    _ letters: DeadLetterTopic, onLeft: (Left) -> Void, report: (Progress) -> Void
  ) throws -> Progress {
    let ranges = try letters.ranges(of: options.selection)
    let sender = options.isDryRun ? nil : try RedriveSender(kafka, rate: options.rate)
    defer { sender?.close() }
    var progress = Progress()
    progress.total = ranges.values.reduce(0) { $0 + Int64($1.count) }
    var positions = ranges.mapValues(\.lowerBound)
    var wanted: Set<LetterID> = if case .ids(let ids) = options.selection { ids } else { [] }
    let began = Instant.now
    var nextReport = began.advanced(milliseconds: 1000)
    var nextCommit = nextReport

    func pulse() throws {
      let now = Instant.now
      progress.seconds = now.seconds(since: began)
      if now >= nextReport {
        report(progress)
        nextReport = now.advanced(milliseconds: 1000)
      }
      if now >= nextCommit {
        try letters.commit()
        nextCommit = .after(milliseconds: 1000)
      }
    }

    /// Sends what the way back is open to.
    func handle(_ batch: ArraySlice<StoredLetter>) throws {
      var ready: [(id: LetterID, record: ProducerRecord)] = []
      for letter in batch {
        switch letter.wayBack(to: letters.topics, maxRedrives: options.maxRedrives) {
        case .back(let record): ready.append((letter.id, record))
        case .left(let reason):
          progress.left += 1
          onLeft(Left(id: letter.id, reason: reason))
        }
      }
      for (id, record, refusal) in try sender?.send(ready) ?? ready.map({ ($0.id, $0.record, nil) }) {
        if let refusal {
          progress.left += 1
          if refusal.isUnknownTopic {
            progress.missingTopics[record.topic, default: 0] += 1
          } else {
            onLeft(Left(id: id, reason: "Kafka does not take it: \(refusal)"))
          }
          continue
        }
        progress.redriven[record.topic, default: 0] += 1
        if !options.isDryRun { letters.note(id, .redriven) }
      }
    }

    do {
      try letters.read(ranges, atOnce: sender?.recordsAtOnce ?? 1000) { found, passed in
        let chosen = found.filter { letters.takes($0, options.selection) }
        for letter in chosen { wanted.remove(letter.id) }
        var rest = chosen[...]
        while !rest.isEmpty, !mustStop {
          let batch = rest.prefix(sender?.batchSize ?? 1000)
          guard sender?.awaitTurn(isGivenUp: { mustStop }) ?? true else { break }
          try handle(batch)
          rest = rest.dropFirst(batch.count)
          try pulse()
        }
        // Stopped in the middle: the rest of this round stays open.
        if !rest.isEmpty { return false }
        for (partition, position) in passed {
          if !options.isDryRun {
            noteGaps(letters, found, partition, (positions[partition] ?? position)..<position)
          }
          positions[partition] = position
        }
        progress.done = positions.reduce(0) { $0 + $1.value - (ranges[$1.key]?.lowerBound ?? 0) }
        try pulse()
        return !mustStop
      }
    } catch {
      // What was acknowledged is noted as far as that is still possible; the rest comes again.
      try? letters.commit()
      throw error
    }
    try letters.commit()
    progress.seconds = Instant.now.seconds(since: began)
    report(progress)
    if let id = wanted.min(), !mustStop { throw letters.missing(id) }
    return progress
  }

  /// Offsets that hold no record (transactions leave such) are nothing to send back: noted as dealt with, so that the group's
  /// position gets past them.
  private func noteGaps(
    _ letters: DeadLetterTopic, _ found: [StoredLetter], _ partition: TopicPartition, _ passed: Range<Int64>
  ) {
    var next = passed.lowerBound
    for letter in found where letter.record.partition == partition {
      if letter.record.offset > next { letters.note(next..<letter.record.offset, of: partition, .redriven) }
      next = letter.record.offset + 1
    }
    if next < passed.upperBound { letters.note(next..<passed.upperBound, of: partition, .redriven) }
  }
}
