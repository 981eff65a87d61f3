import Kafka
import Synchronization
import Testing

@Suite struct ProducerTests {
  @Test func reportsEveryDelivery() throws {
    let setup = try Setup(partitions: 2)
    let producer = try setup.producer()
    let reports = Collected<Delivery>()
    for number in 0..<20 {
      try producer.send(ProducerRecord(topic: "t", value: [UInt8(number)], partition: Int32(number % 2))) { result in
        if case .success(let delivery) = result { reports.append(delivery) }
      }
    }
    try producer.flush(timeoutMilliseconds: 30_000)
    #expect(Set(reports.all.map(\.partition)) == [part(0), part(1)])
    #expect(reports.all.filter { $0.partition == part(0) }.compactMap(\.offset).sorted() == Array(0..<10))
    #expect(producer.counts.delivered == 20)
    #expect(producer.counts.failed == 0)
    #expect(producer.outstanding == 0)
  }

  /// A queue of ten records, and a broker that is slow enough for it to fill: nothing is lost, nothing is refused.
  @Test func waitsForRoomInAFullQueue() throws {
    let setup = try Setup()
    let producer = try setup.producer(("queue.buffering.max.messages", "10"), ("linger.ms", "0"))
    try producer.warm(topics: ["t"])
    try setup.broker.setRoundTripTime(milliseconds: 5)
    for number in 0..<300 { try producer.send(topic: "t", key: nil, value: Array("\(number)".utf8).span) }
    try producer.flush(timeoutMilliseconds: 60_000)
    #expect(producer.counts.delivered == 300)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(), .beginning)])
    #expect(try consumer.take(300).map(\.text) == (0..<300).map { "\($0)" })
  }

  @Test func givesUpOnAFullQueueAtTheMessageTimeout() throws {
    let setup = try Setup()
    let producer = try setup.producer(("queue.buffering.max.messages", "2"), ("message.timeout.ms", "1000"))
    try producer.warm(topics: ["t"])
    try setup.broker.setDown()
    let failures = Collected<KafkaError>()
    var refused: KafkaError?
    // Each record waits for one of those before it to time out, so all are taken or the call says that it can't.
    for number in 0..<4 {
      do throws(KafkaError) {
        try producer.send(ProducerRecord(topic: "t", value: [UInt8(number)])) {
          if case .failure(let error) = $0 { failures.append(error) }
        }
      } catch { refused = error }
    }
    try eventually("the reports") { producer.outstanding == 0 }
    #expect(failures.all.count + (refused == nil ? 0 : 1) >= 4 || refused?.isRetriable == true)
    #expect(failures.all.allSatisfy { $0.isTimeout && $0.isRetriable })
    #expect(producer.counts.failed == failures.all.count)
    producer.close(timeoutMilliseconds: 100)
  }

  /// As on a topic that its broker does not lead quite yet: brokers take any first number from a producer that they don't know, so
  /// of two batches under way the second may be stored where the first was not, and librdkafka takes the first for stored as well.
  @Test(arguments: [3, 6, 7, 19, 20] as [Int32]) func acknowledgesNothingThatIsNotStored(code: Int32) throws {
    let setup = try Setup()
    let producer = try setup.producer(("batch.num.messages", "1"), ("linger.ms", "0"))
    try setup.broker.setRoundTripTime(milliseconds: 20)
    try setup.broker.failNext(.produce, codes: [code])
    for number in 0..<10 { try producer.send(topic: "t", key: nil, value: "\(number)".utf8.span) }
    try producer.flush(timeoutMilliseconds: 30_000)
    #expect(producer.counts.delivered == 10)
    let consumer = try Consumer(setup.configuration, group: "g")
    #expect(try consumer.watermarks([part()])[part()]?.high == 10)
    try consumer.assign([(part(), .beginning)])
    #expect(try consumer.take(10).map(\.text) == (0..<10).map { "\($0)" })
  }

  @Test func retriesWhatPasses() throws {
    let setup = try Setup()
    let producer = try setup.producer()
    try producer.warm(topics: ["t"])
    // NOT_LEADER_FOR_PARTITION, NOT_ENOUGH_REPLICAS, and a cut connection.
    try setup.broker.failNext(.produce, codes: [6, 19, -195])
    try producer.sendAndWait([ProducerRecord(topic: "t", value: [1])], timeoutMilliseconds: 60_000)
    #expect(producer.counts.delivered == 1)
  }

  @Test func throwsTheFirstFailure() throws {
    let setup = try Setup()
    let producer = try setup.producer(("linger.ms", "200"))
    try producer.warm(topics: ["t"])
    // TOPIC_AUTHORIZATION_FAILED
    try setup.broker.failNext(.produce, codes: [29])
    let records = (0..<3).map { ProducerRecord(topic: "t", value: [UInt8($0)]) }
    let error = kafkaError { () throws(KafkaError) in try producer.sendAndWait(records, timeoutMilliseconds: 30_000) }
    #expect(error?.code == 29)
    #expect(error?.message.contains("t") == true)
    #expect(error?.isRetriable == false)
    #expect(producer.counts.firstFailure?.code == 29)
    // The same list again is what the caller does about it, when the reason has passed and the metadata says so.
    try eventually("the same list to be sent") {
      do throws(KafkaError) { try producer.sendAndWait(records, timeoutMilliseconds: 30_000) } catch { return false }
      return true
    }
  }

  @Test func throwsWhenAcknowledgementsAreMissing() throws {
    let setup = try Setup()
    let producer = try setup.producer()
    try producer.warm(topics: ["t"])
    try setup.broker.setDown()
    let error = kafkaError { () throws(KafkaError) in
      try producer.sendAndWait([ProducerRecord(topic: "t", value: [1])], timeoutMilliseconds: 300)
    }
    #expect(error?.isTimeout == true)
    #expect(error?.isRetriable == true)
    #expect(error?.message.contains("1 of 1") == true)
    let unflushed = kafkaError { () throws(KafkaError) in try producer.flush(timeoutMilliseconds: 100) }
    #expect(unflushed?.isTimeout == true)
    producer.close(timeoutMilliseconds: 100)
  }

  @Test func refusesWhatCanNeverBeSent() throws {
    let setup = try Setup()
    let producer = try setup.producer()
    try producer.warm(topics: ["t"])
    let large = kafkaError { () throws(KafkaError) in
      try producer.send(ProducerRecord(topic: "t", value: Array(repeating: 0, count: 3_000_000)))
    }
    #expect(large?.isMessageTooLarge == true)
    #expect(large?.message.contains("message.max.bytes") == true)
    // With headers, because a bad partition and headers once freed them twice (#4627).
    for partition: Int32 in [-5, 77] {
      let unknown = kafkaError { () throws(KafkaError) in
        try producer.send(
          ProducerRecord(topic: "t", value: [1], headers: [Header("a", "b")], partition: partition),
          onDelivery: { _ in })
      }
      #expect(unknown?.isUnknownTopic == true)
    }
  }

  @Test func namesAnUnknownTopic() throws {
    let setup = try Setup()
    // UNKNOWN_TOPIC_OR_PART; the embedded broker would make the topic otherwise.
    try setup.broker.setTopicError("t", code: 3)
    let producer = try setup.producer()
    let error = kafkaError { () throws(KafkaError) in try producer.warm(topics: ["t"]) }
    #expect(error?.isUnknownTopic == true)
    #expect(error?.message.contains("topic t") == true)
  }

  @Test func closesOnceAndReportsWhatItGivesUp() throws {
    let setup = try Setup()
    let producer = try setup.producer()
    try producer.warm(topics: ["t"])
    try setup.broker.setDown()
    let failures = Collected<KafkaError>()
    for _ in 0..<5 {
      try producer.send(ProducerRecord(topic: "t", value: [1])) {
        if case .failure(let error) = $0 { failures.append(error) }
      }
    }
    producer.close(timeoutMilliseconds: 200)
    producer.close(timeoutMilliseconds: 200)
    #expect(failures.all.count == 5)
    #expect(failures.all.allSatisfy { $0.isPurged })
    let error = kafkaError { () throws(KafkaError) in try producer.send(ProducerRecord(topic: "t", value: [1])) }
    #expect(error?.isClosed == true)
  }

  @Test func closesWhenItIsDropped() throws {
    let setup = try Setup()
    let delivered = Collected<Delivery>()
    do {
      let producer = try setup.producer(("linger.ms", "10000"))
      // What is left to do then is done in a moment: it does not wait for long.
      try producer.warm(topics: ["t"])
      try producer.send(ProducerRecord(topic: "t", value: [1])) {
        if case .success(let delivery) = $0 { delivered.append(delivery) }
      }
    }
    #expect(delivered.all.count == 1)
  }

  @Test func tellsOfAFatalError() throws {
    let setup = try Setup()
    let events = Collected<ClientEvent>()
    var configuration = setup.configuration
    configuration.onEvent = { events.append($0) }
    let producer = try Producer(configuration)
    try producer.warm(topics: ["t"])
    producer.injectFatalError()
    #expect(producer.fatalError?.isFatal == true)
    #expect(producer.fatalError?.isRetriable == false)
    let error = kafkaError { () throws(KafkaError) in try producer.send(ProducerRecord(topic: "t", value: [1])) }
    #expect(error?.isFatal == true)
    try eventually("the event") { events.all.contains { $0.level == .critical && $0.error?.isFatal == true } }
    producer.close(timeoutMilliseconds: 1_000)
  }

  @Test func servesManyThreadsAtOnce() async throws {
    let setup = try Setup(partitions: 4)
    let producer = try setup.producer()
    try await withThrowingTaskGroup { group in
      for sender in 0..<8 {
        group.addTask {
          for number in 0..<100 { try producer.send(topic: "t", key: "\(sender).\(number)".utf8.span, value: nil) }
        }
      }
      try await group.waitForAll()
    }
    try producer.flush(timeoutMilliseconds: 30_000)
    #expect(producer.counts.delivered == 800)
  }
}
