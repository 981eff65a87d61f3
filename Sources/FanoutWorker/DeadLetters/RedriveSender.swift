internal import Kafka

/// Sends records and waits for their acknowledgements, no faster than it is told.
final class RedriveSender {
  /// How many records are sent and acknowledged together.
  let batchSize: Int
  /// How many are worth reading ahead: a slow one must get back to reading now and then.
  var recordsAtOnce: Int { batchSize * 5 }

  private let producer: Producer
  private let rate: Int?
  private var warmed: Set<String> = []
  /// Topics that are not there. They are asked for once.
  private var missing: [String: KafkaError] = [:]
  private var sent = 0
  private let began = Instant.now

  /// How long acknowledgements are waited for, in milliseconds.
  private static let patience = 60_000

  init(_ kafka: ClientConfiguration, rate: Int?) throws(KafkaError) {
    producer = try Producer(kafka, mode: .lowLatency)
    self.rate = rate
    // Ten batches a second at most, so that the rate is even, and each for its own part of a second.
    batchSize = rate.map { max(1, min(500, $0 / 10)) } ?? 500
  }

  func close() { producer.close(timeoutMilliseconds: 1000) }

  /// Blocks until the rate allows another batch.
  /// - Parameter isGivenUp: asked meanwhile.
  /// - Returns: false when it was given up.
  func awaitTurn(isGivenUp: () -> Bool) -> Bool {
    guard let rate else { return !isGivenUp() }
    let turn = began.advanced(milliseconds: Int(Double(sent) * 1000 / Double(rate)))
    while true {
      if isGivenUp() { return false }
      let wait = turn.millisecondsFromNow
      if wait == 0 { return true }
      pause(milliseconds: min(wait, 100))
    }
  }

  /// Returns when each record is acknowledged, or refused for what it is.
  /// - Throws: what is not the records' fault, after which some may have been stored.
  func send<ID>(
    _ records: [(id: ID, record: ProducerRecord)]
  ) throws(KafkaError) -> [(id: ID, record: ProducerRecord, refusal: KafkaError?)] {
    for topic in Set(records.map(\.record.topic)).subtracting(warmed).sorted() where missing[topic] == nil {
      do {
        try producer.warm(topics: [topic])
        warmed.insert(topic)
      } catch {
        guard error.isUnknownTopic else { throw error }
        missing[topic] = error
      }
    }
    let refused = records.compactMap { id, record in missing[record.topic].map { (id, record, $0) } }
    return try refused + sendToKnown(records.filter { missing[$0.record.topic] == nil })
  }

  private func sendToKnown<ID>(
    _ records: [(id: ID, record: ProducerRecord)]
  ) throws(KafkaError) -> [(id: ID, record: ProducerRecord, refusal: KafkaError?)] {
    if records.isEmpty { return [] }
    sent += records.count
    do {
      try producer.sendAndWait(records.map(\.record), timeoutMilliseconds: Self.patience)
      return records.map { ($0.id, $0.record, nil) }
    } catch {
      guard Self.isRefusal(error) else { throw error }
    }
    // One of them is at fault, so each has to be tried alone.
    var outcomes: [(id: ID, record: ProducerRecord, refusal: KafkaError?)] = []
    for (id, record) in records {
      if let error = missing[record.topic] {
        outcomes.append((id, record, error))
        continue
      }
      do {
        try producer.sendAndWait([record], timeoutMilliseconds: Self.patience)
        outcomes.append((id, record, nil))
      } catch {
        guard Self.isRefusal(error) else { throw error }
        if error.isUnknownTopic { missing[record.topic] = error }
        outcomes.append((id, record, error))
      }
    }
    return outcomes
  }

  /// Whether waiting would not help.
  private static func isRefusal(_ error: KafkaError) -> Bool {
    !error.isRetriable && !error.isFatal && !error.isAuthenticationFailure && !error.isClosed && !error.isPurged
  }
}
