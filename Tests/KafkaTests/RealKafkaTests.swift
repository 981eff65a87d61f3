import Glibc
import Kafka
import Testing

/// What only a real Kafka proves. Set FANOUT_TEST_BROKERS to `host:port` of one.
private let brokers = unsafe getenv("FANOUT_TEST_BROKERS").map { unsafe String(cString: $0) }

@Suite(.enabled(if: brokers != nil, "needs a real Kafka: set FANOUT_TEST_BROKERS to its host:port"))
struct RealKafkaTests {
  private let configuration = ClientConfiguration(
    brokers: brokers ?? "", properties: [("session.timeout.ms", "6000"), ("heartbeat.interval.ms", "200")])

  /// A topic that no other test or run uses.
  private func makeTopic(_ partitions: Int = 1, _ settings: [String: String] = [:]) throws -> String {
    let name = "kafka-tests.\(UInt64.random(in: .min ... .max))"
    let outcome = try Admin.createTopics(
      [Admin.TopicSpec(name: name, partitions: partitions, replicationFactor: 1, configuration: settings)],
      with: configuration)
    guard case .created = outcome[name] else {
      Issue.record("\(outcome)")
      throw GaveUp()
    }
    return name
  }

  private func fill(
    _ topic: String, _ numbers: Range<Int>, partitions: Int = 1, timestamp: (Int) -> Int64? = { _ in nil }
  )
    throws
  {
    let producer = try Producer(configuration)
    try producer.warm(topics: [topic])
    try producer.sendAndWait(
      numbers.map {
        ProducerRecord(
          topic: topic, value: Array("\($0)".utf8), timestamp: timestamp($0), partition: Int32($0 % partitions))
      }, timeoutMilliseconds: 30_000)
  }

  // MARK: Administration

  @Test func makesAndDescribesTopics() throws {
    let topic = try makeTopic(3, ["cleanup.policy": "compact", "retention.ms": "-1"])
    let again = try Admin.createTopics([Admin.TopicSpec(name: topic, partitions: 9)], with: configuration)
    if case .existed = again[topic] {} else { Issue.record("\(again)") }
    let bad = try Admin.createTopics(
      [
        Admin.TopicSpec(
          name: topic + ".bad", partitions: 1, replicationFactor: 1, configuration: ["cleanup.policy": "sometimes"])
      ],
      with: configuration)
    if case .failed(let error) = bad[topic + ".bad"] {
      #expect(error.message.contains(topic + ".bad"))
      #expect(!error.isRetriable)
    } else {
      Issue.record("\(bad)")
    }
    let metadata = try Admin.metadata(topics: [topic, topic + ".none"], with: configuration)
    #expect(metadata.topics.first?.partitionCount == 3)
    #expect(metadata.topics.first?.replicationFactor == 1)
    #expect(metadata.topics.last?.error?.isUnknownTopic == true)
    #expect(!metadata.brokers.isEmpty)
    #expect(try Admin.metadata(with: configuration).topics.contains { $0.name == topic })
    let settings = try Admin.describeConfigs(topics: [topic], with: configuration)
    #expect(settings[topic]?["cleanup.policy"] == "compact")
    #expect(settings[topic]?["retention.ms"] == "-1")
    let unknown = kafkaError { () throws(KafkaError) in
      try Admin.describeConfigs(topics: [topic + ".none"], with: configuration)
    }
    #expect(unknown?.message.contains(topic + ".none") == true)
  }

  // MARK: Offsets

  @Test func findsOffsetsByTime() throws {
    let topic = try makeTopic(2)
    let start: Int64 = 1_785_000_000_000
    try fill(topic, 0..<10) { start + Int64($0) * 1_000 }
    let consumer = try Consumer(configuration, group: topic)
    let (first, second) = (part(0, of: topic), part(1, of: topic))
    #expect(try consumer.offsets(forTime: start + 3_500, [first, second]) == [first: 4])
    #expect(try consumer.offsets(forTime: 0, [first]) == [first: 0])
    #expect(try consumer.offsets(forTime: -5, [first]) == [first: 0])
    #expect(try consumer.offsets(forTime: start + 9_001, [first]).isEmpty)
    #expect(try consumer.watermarks(first) == (0, 10))
    #expect(try consumer.watermarks(second) == (0, 0))
  }

  @Test func knowsCommittedOffsetsOfOtherMembers() throws {
    let topic = try makeTopic(2)
    try fill(topic, 0..<10, partitions: 2)
    let (first, second) = (part(0, of: topic), part(1, of: topic))
    let consumer = try Consumer(configuration, group: topic)
    try consumer.assign([(first, .beginning), (second, .beginning)])
    _ = try consumer.take(10)
    #expect(try consumer.storeOffset(first, next: 5))
    #expect(consumer.close(timeoutMilliseconds: 20_000))
    // Closing commits what is stored.
    let other = try Consumer(configuration, group: topic)
    #expect(try other.committed([first, second]) == [first: 5])
    try other.commit([second: 2], timeoutMilliseconds: 20_000)
    #expect(try other.committed([first, second]) == [first: 5, second: 2])
  }

  @Test func reportsAnUnknownTopicOnceSubscribed() throws {
    let consumer = try Consumer(configuration, group: "kafka-tests.\(UInt64.random(in: .min ... .max))")
    let recorder = Recorder()
    try consumer.subscribe(["kafka-tests.does-not-exist"], handler: recorder)
    var thrown: KafkaError?
    try eventually("the error") {
      do throws(KafkaError) { try consumer.poll(max: 1, timeoutMilliseconds: 50) { _ in } } catch { thrown = error }
      return thrown != nil
    }
    #expect(thrown?.isUnknownTopic == true)
    #expect(thrown?.message.contains("kafka-tests.does-not-exist") == true)
    #expect(consumer.close(timeoutMilliseconds: 20_000))
  }

  @Test func beginsAgainWhenItsOffsetIsOutOfRange() throws {
    let topic = try makeTopic()
    try fill(topic, 0..<3)
    let consumer = try Consumer(configuration, group: topic)
    try consumer.assign([(part(0, of: topic), .offset(1_000))])
    #expect(try consumer.take(3).map(\.text) == ["0", "1", "2"])
  }

  // MARK: Groups

  @Test func handsPartitionsOverWithoutReadingTwice() throws {
    let topic = try makeTopic(4)
    try fill(topic, 0..<2_000, partitions: 4)
    let first = try Member(configuration, group: topic, topics: [topic])
    try eventually("the first member's records") {
      try first.poll()
      return first.seen.count >= 100
    }
    let second = try Member(configuration, group: topic, topics: [topic])
    try eventually("all records, by two members") {
      try first.poll()
      try second.poll()
      return Set(first.seen + second.seen).count >= 2_000 && second.hasPartitions
    }
    // Drained and committed before the revoke was acknowledged: nobody read a record twice.
    #expect(first.seen.count + second.seen.count == 2_000)
    #expect(first.stored.allSatisfy { $0 })
    #expect(first.commitErrors.isEmpty && second.commitErrors.isEmpty)
    #expect(second.consumer.close(timeoutMilliseconds: 20_000))
    // The partitions of the member that left come back.
    try eventually("the return of all partitions") {
      try first.poll()
      return first.consumer.assignment.count == 4
    }
    #expect(first.consumer.close(timeoutMilliseconds: 20_000))
    #expect(first.seen.count + second.seen.count == 2_000)
  }

  /// librdkafka leaves a partition paused that is taken away: it must not come back silent.
  @Test func forgetsThePauseOfARevokedPartition() throws {
    let (topic, other) = (try makeTopic(2), try makeTopic())
    try fill(topic, 0..<20, partitions: 2)
    let recorder = Recorder()
    recorder.onAssign = { partitions, consumer in
      // The first time only.
      if consumer.epoch == 1 { #expect(throws: Never.self) { try consumer.pause(partitions) } }
    }
    let consumer = try Consumer(configuration, group: topic)
    try consumer.subscribe([topic], handler: recorder)
    try eventually("the first assignment") {
      try consumer.poll(max: 10, timeoutMilliseconds: 50) { _ in Issue.record("a record of a paused partition") }
      return !recorder.events.isEmpty
    }
    #expect(consumer.pausedPartitions == [part(0, of: topic), part(1, of: topic)])
    // A change of the subscription makes the member join again.
    try consumer.subscribe([topic, other], handler: recorder)
    var read = 0
    try eventually("the records of the second assignment") {
      try consumer.poll(max: 10, timeoutMilliseconds: 50) { _ in read += 1 }
      return read == 20
    }
    #expect(consumer.pausedPartitions.isEmpty)
    #expect(consumer.close(timeoutMilliseconds: 20_000))
  }
}
