internal import Kafka

/// Says once that the brokers can't be used, and again when they can.
struct BrokerWatch {
  /// Why they can't be used.
  private(set) var problem: KafkaError?
  private var nextLook = Instant.now
  private let log: Log

  init(log: Log) {
    self.log = log
  }

  /// Called all the time; it looks now and then.
  mutating func look(at consumer: Consumer) {
    guard Instant.now >= nextLook else { return }
    nextLook = .after(milliseconds: 1000)
    if let problem = consumer.problem {
      if self.problem == nil { log.warning("Kafka can't be used: \(problem); waiting for it") }
      self.problem = problem
      // An idle consumer does not notice by itself that brokers are back.
      try? consumer.checkConnection(timeoutMilliseconds: 500)
    } else if self.problem != nil {
      self.problem = nil
      log.info("Kafka can be used again")
    }
  }

  /// Another client takes over.
  mutating func forget() { problem = nil }
}
