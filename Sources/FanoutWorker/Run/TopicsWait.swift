internal import Kafka
internal import SocialEvents

enum TopicsWait {
  /// Waits for the brokers as long as it takes, or with `untilCaughtUp` for one try.
  /// - Returns: false when a stop was asked for meanwhile.
  /// - Throws: a topic that is missing; what no waiting mends.
  static func wait(
    for configuration: WorkerConfiguration, _ consumer: Consumer, _ shared: SharedProgress, _ log: Log
  ) throws -> Bool {
    let topics = configuration.topics
    var backoff = Backoff(firstMilliseconds: 500)
    while !shared.isStopRequested {
      do {
        // Short tries, as a stop has to wait for the one at hand.
        _ = try consumer.partitions(
          of: topics.events + [topics.tasks, topics.deadLetters],
          timeoutMilliseconds: configuration.untilCaughtUp ? 10_000 : 1000)
        return true
      } catch {
        if error.isUnknownTopic {
          throw WorkerError("\(error.message). Run: fanout topics create --brokers \(configuration.kafka.brokers)")
        }
        if configuration.untilCaughtUp || error.isAuthenticationFailure { throw error }
        log.warning("can't reach Kafka at \(configuration.kafka.brokers) yet: \(error); trying again")
        shared.pauseUnlessStopped(milliseconds: backoff.nextMilliseconds())
      }
    }
    return false
  }
}
