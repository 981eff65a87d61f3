import Kafka
import Testing

@Suite struct ConsumerTests {
  // MARK: Reading

  @Test func knowsWhenItHasReachedTheEnd() throws {
    let setup = try Setup(partitions: 2)
    try setup.fill(0..<5)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(0), .beginning), (part(1), .beginning)])
    #expect(!consumer.hasReachedEnd(part(0)))
    #expect(consumer.position(part(0)) == nil)
    #expect(try consumer.takeToEnd([part(0), part(1)]).count == 5)
    #expect(consumer.endOffset(part(0)) == 5)
    #expect(consumer.position(part(0)) == 5)
    // An empty partition has an end as well.
    #expect(consumer.endOffset(part(1)) == 0)

    // A record that comes later takes the end back, until the next one is seen.
    try setup.fill(5..<6)
    var sawRecordBeforeEnd = false
    try eventually("the sixth record") {
      let count = try consumer.poll(max: 1, timeoutMilliseconds: 50) { _ in }
      if count == 1 { sawRecordBeforeEnd = !consumer.hasReachedEnd(part(0)) }
      return count == 1
    }
    #expect(sawRecordBeforeEnd)
    #expect(consumer.position(part(0)) == 6)
    _ = try consumer.takeToEnd([part(0)])
    #expect(consumer.endOffset(part(0)) == 6)
  }

  @Test func beginsWhereItIsTold() throws {
    let setup = try Setup()
    try setup.fill(0..<10)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(), .offset(7))])
    #expect(try consumer.takeToEnd([part()]).map(\.text) == ["7", "8", "9"])
    try consumer.assign([(part(), .end)])
    #expect(try consumer.takeToEnd([part()]).isEmpty)
    #expect(consumer.endOffset(part()) == 10)
    try consumer.commit([part(): 4], timeoutMilliseconds: 30_000)
    try consumer.assign([(part(), .committed)])
    #expect(try consumer.takeToEnd([part()]).map(\.offset) == Array(4..<10))
    #expect(consumer.assignment == [part()])
  }

  @Test func seeks() throws {
    let setup = try Setup()
    try setup.fill(0..<10)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(), .beginning)])
    _ = try consumer.takeToEnd([part()])
    try consumer.seek(part(), to: .offset(8))
    #expect(!consumer.hasReachedEnd(part()))
    #expect(try consumer.takeToEnd([part()]).map(\.text) == ["8", "9"])
    let error = kafkaError { () throws(KafkaError) in try consumer.seek(part(9), to: .beginning) }
    #expect(error?.message.contains("t[9]") == true)
  }

  /// Resuming what isn't paused delivers records again (#4637), and so may a careless pause.
  @Test func pausingNeverRepeatsOrLosesARecord() throws {
    let setup = try Setup(partitions: 2)
    try setup.fill(0..<400, partitions: 2)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(0), .beginning), (part(1), .beginning)])
    var seen: [TopicPartition: [Int64]] = [:]
    var total = 0
    var round = 0
    try eventually("four hundred records") {
      try consumer.resume([part(0), part(1)])
      var paused: [TopicPartition] = []
      if round % 3 == 1 { paused.append(part(0)) }
      if round % 4 == 2 { paused.append(part(1)) }
      try consumer.pause(paused)
      try consumer.pause(paused)
      #expect(consumer.pausedPartitions == Set(paused))
      var strays = 0
      total += try consumer.poll(max: 13, timeoutMilliseconds: 20) { record in
        seen[record.topicPartition, default: []].append(record.offset)
        if paused.contains(record.topicPartition) { strays += 1 }
      }
      #expect(strays == 0)
      round += 1
      return total >= 400
    }
    try consumer.resume([part(0), part(1)])
    try consumer.resume([part(0), part(1)])
    total += try consumer.take(0).count
    #expect(total == 400)
    #expect(seen[part(0)] == Array(0..<200))
    #expect(seen[part(1)] == Array(0..<200))
  }

  // MARK: Offsets

  @Test func storesAndCommits() throws {
    let setup = try Setup()
    try setup.fill(0..<10)
    let consumer = try Consumer(setup.configuration, group: "g", commitsStoredOffsets: false)
    #expect(try consumer.committed([part()]).isEmpty)
    try consumer.assign([(part(), .beginning)])
    try consumer.commitStored(timeoutMilliseconds: 30_000)
    _ = try consumer.take(10)
    #expect(try consumer.storeOffset(part(), next: 6))
    #expect(try consumer.committed([part()]).isEmpty)
    try consumer.commitStored(timeoutMilliseconds: 30_000)
    #expect(try consumer.committed([part()]) == [part(): 6])
    // Not assigned: not ours to store.
    #expect(try consumer.storeOffset(part(3), next: 1) == false)
    #expect(consumer.close(timeoutMilliseconds: 20_000))

    // Another client of the group sees it without reading the partition.
    let other = try Consumer(setup.configuration, group: "g")
    #expect(try other.committed([part()]) == [part(): 6])
  }

  @Test func commitsNotes() throws {
    let setup = try Setup(partitions: 3)
    let consumer = try Consumer(setup.configuration, group: "g", commitsStoredOffsets: false)
    let commits = [
      part(0): CommittedOffset(next: 4, note: "settled 3+1"), part(1): CommittedOffset(next: 0, note: "ünï"),
      part(2): CommittedOffset(next: 7),
    ]
    try consumer.commit(commits, timeoutMilliseconds: 30_000)
    let other = try Consumer(setup.configuration, group: "g")
    #expect(try other.committedWithNotes([part(0), part(1), part(2)]) == commits)
    #expect(try other.committed([part(0), part(1), part(2)]) == [part(0): 4, part(1): 0, part(2): 7])
    // A commit without a note takes the note away.
    try consumer.commit([part(0): 5], timeoutMilliseconds: 30_000)
    #expect(try other.committedWithNotes([part(0)]) == [part(0): CommittedOffset(next: 5)])
  }

  @Test func commitsInTheBackground() throws {
    let setup = try Setup()
    try setup.fill(0..<3)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(), .beginning)])
    _ = try consumer.take(3)
    #expect(try consumer.storeOffset(part(), next: 3))
    try eventually("the commit") {
      try consumer.poll(max: 1, timeoutMilliseconds: 50) { _ in }
      return try consumer.committed([part()]) == [part(): 3]
    }
  }

  @Test func tellsWhatAPartitionHolds() throws {
    let setup = try Setup(partitions: 3)
    try setup.fill(0..<4)
    let consumer = try Consumer(setup.configuration, group: "g")
    #expect(try consumer.watermarks(part(0)) == (0, 4))
    #expect(try consumer.watermarks(part(2)) == (0, 0))
    let all = try consumer.watermarks([part(0), part(1), part(2)])
    #expect(all.mapValues { $0.high } == [part(0): 4, part(1): 0, part(2): 0])
    let error = kafkaError { () throws(KafkaError) in try consumer.watermarks(part(7), timeoutMilliseconds: 2_000) }
    #expect(error?.message.contains("t[7]") == true)
    #expect(try consumer.partitions(of: ["t"]) == [part(0), part(1), part(2)])
  }

  // MARK: Failures

  @Test func namesAnUnknownTopic() throws {
    let setup = try Setup()
    try setup.broker.setTopicError("t", code: 3)
    let consumer = try Consumer(setup.configuration, group: "g")
    let error = kafkaError { () throws(KafkaError) in try consumer.partitions(of: ["t"]) }
    #expect(error?.isUnknownTopic == true)
    #expect(error?.message.contains("topic t") == true)
  }

  /// An error comes as a record whose value is the error's text; it must not pass for one.
  @Test func throwsWhatAPartitionReports() throws {
    let setup = try Setup()
    try setup.fill(0..<2)
    let consumer = try Consumer(setup.configuration, group: "g")
    // TOPIC_AUTHORIZATION_FAILED
    try setup.broker.failNext(.fetch, codes: Array(repeating: 29, count: 3))
    try consumer.assign([(part(), .beginning)])
    var thrown: KafkaError?
    var read: [OwnedRecord] = []
    try eventually("the error") {
      do throws(KafkaError) {
        try consumer.poll(max: 10, timeoutMilliseconds: 50) { read.append($0.owned()) }
      } catch { thrown = error }
      return thrown != nil
    }
    #expect(thrown?.code == 29)
    #expect(thrown?.message.contains("t[0]") == true)
    #expect(thrown?.isRetriable == false)
    // The records follow when the error has passed.
    try setup.broker.clearFailures(of: .fetch)
    try eventually("the records") {
      do throws(KafkaError) {
        try consumer.poll(max: 10, timeoutMilliseconds: 50) { read.append($0.owned()) }
      } catch { thrown = error }
      return read.count >= 2
    }
    #expect(read.map(\.text) == ["0", "1"])
  }

  @Test func tellsThatBrokersAreAwayAndBack() throws {
    let events = Collected<ClientEvent>()
    let setup = try Setup(onEvent: { events.append($0) })
    try setup.fill(0..<1)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(), .beginning)])
    _ = try consumer.takeToEnd([part()])
    #expect(consumer.problem == nil)
    try setup.broker.setDown()
    try eventually("the problem") {
      try consumer.poll(max: 10, timeoutMilliseconds: 50) { _ in }
      return consumer.problem != nil
    }
    #expect(consumer.problem?.isRetriable == true)
    #expect(consumer.problem?.isConnectionFailure == true)
    #expect(consumer.problem?.message.contains("can't reach Kafka at \(setup.broker.bootstrapServers)") == true)
    #expect(events.all.contains { $0.error?.isConnectionFailure == true })
    let asked = kafkaError { () throws(KafkaError) in try consumer.watermarks(part(), timeoutMilliseconds: 200) }
    #expect(asked?.isRetriable == true, "\(String(describing: asked))")
    #expect(asked?.message.contains(setup.broker.bootstrapServers) == true)

    try setup.broker.setUp()
    try eventually("the brokers") {
      do throws(KafkaError) { try consumer.checkConnection(timeoutMilliseconds: 500) } catch { return false }
      return true
    }
    #expect(consumer.problem == nil)
    try setup.fill(1..<2)
    #expect(try consumer.take(1).map(\.text) == ["1"])
  }

  @Test func reportsUnreachableBrokersByAddress() throws {
    let consumer = try Consumer(ClientConfiguration(brokers: "127.0.0.1:9"), group: "g")
    let error = kafkaError { () throws(KafkaError) in
      try consumer.partitions(of: ["t"], timeoutMilliseconds: 500)
    }
    #expect(error?.isRetriable == true)
    #expect(error?.message.contains("can't reach Kafka at 127.0.0.1:9") == true)
  }

  // MARK: Closing

  @Test func closesWithoutItsBrokers() throws {
    let setup = try Setup()
    try setup.fill(0..<3)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(), .beginning)])
    _ = try consumer.take(3)
    _ = try consumer.storeOffset(part(), next: 3)
    try setup.broker.setDown()
    // Whether it finishes is librdkafka's affair; that the call returns is ours.
    _ = consumer.close(timeoutMilliseconds: 500)
    #expect(consumer.close(timeoutMilliseconds: 500))
    let error = kafkaError { () throws(KafkaError) in try consumer.poll(max: 1, timeoutMilliseconds: 0) { _ in } }
    #expect(error?.isClosed == true)
    #expect(consumer.assignment.isEmpty)
    #expect(consumer.fatalError == nil)
  }

  @Test func closesAfterAFatalError() throws {
    let setup = try Setup()
    try setup.fill(0..<3)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(), .beginning)])
    _ = try consumer.take(3)
    consumer.injectFatalError()
    #expect(consumer.fatalError?.isFatal == true)
    #expect(consumer.close(timeoutMilliseconds: 10_000))
  }
}
