internal import FanoutStore
internal import Kafka
internal import SocialEvents
internal import Synchronization

/// Where the worker writes to Kafka: dead letters, and tasks for slices.
final class Outlet: SliceHandover {
  private let configuration: ClientConfiguration
  private let topics: Topics
  private let producer: Mutex<Producer>

  /// How long one try waits for acknowledgements, in milliseconds.
  private static let patience = 20_000

  init(configuration: ClientConfiguration, topics: Topics) throws(KafkaError) {
    self.configuration = configuration
    self.topics = topics
    producer = Mutex(try Producer(configuration, mode: .lowLatency))
  }

  /// Fetches the topics' metadata, without which the first record would wait half a second.
  func warm() throws(KafkaError) {
    try producer.withLock { $0 }.warm(topics: [topics.tasks, topics.deadLetters])
  }

  /// Returns when the letters are acknowledged.
  func send(_ letters: [DeadLetter]) throws(KafkaError) {
    do {
      try acknowledged(letters.map { $0.producerRecord(topic: topics.deadLetters) })
    } catch {
      guard error.isMessageTooLarge else { throw error }
      // One of them does not fit, so each has to be tried alone.
      for letter in letters {
        do {
          try acknowledged([letter.producerRecord(topic: topics.deadLetters)])
        } catch {
          guard error.isMessageTooLarge else { throw error }
          try acknowledged([letter.stub(topic: topics.deadLetters)])
        }
      }
    }
  }

  func handOver(_ slices: [FanoutSlice], trace: (FanoutSlice) -> String?) throws -> Int {
    try acknowledged(
      slices.map { SliceTask.producerRecord($0, topic: topics.tasks, traceparent: trace($0)) })
    return 0
  }

  private func acknowledged(_ records: [ProducerRecord]) throws(KafkaError) {
    do {
      try producer.withLock { $0 }.sendAndWait(records, timeoutMilliseconds: Self.patience)
    } catch {
      // An idempotent producer that failed for good stays so: the next try gets a new one.
      if error.isFatal { try replaceProducer() }
      throw error
    }
  }

  private func replaceProducer() throws(KafkaError) {
    let fresh = try Producer(configuration, mode: .lowLatency)
    let failed = producer.withLock { current in
      defer { current = fresh }
      return current
    }
    failed.close(timeoutMilliseconds: 1000)
  }

  func close(timeoutMilliseconds: Int) {
    producer.withLock { $0 }.close(timeoutMilliseconds: timeoutMilliseconds)
  }
}
