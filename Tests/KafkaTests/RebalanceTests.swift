import Kafka
import Testing

/// Groups on the embedded broker. It refuses every commit while a group rebalances, as Kafka doesn't, and may abort the
/// process when a member joins again; what needs more is among the tests on a real Kafka.
@Suite(.serialized) struct RebalanceTests {
  @Test func drainsBeforeItAcknowledges() throws {
    let setup = try Setup(partitions: 4)
    try setup.fill(0..<400, partitions: 4)
    let first = try Member(setup.configuration, group: "g", topics: ["t"])
    try eventually("the first member's records") {
      try first.poll()
      return first.seen.count >= 100
    }
    #expect(first.recorder.events == [.assigned((0..<4).map { part($0) })])
    let epoch = first.consumer.epoch

    let second = try Member(setup.configuration, group: "g", topics: ["t"])
    try eventually("all records, by two members") {
      try first.poll()
      try second.poll()
      return Set(first.seen + second.seen).count >= 400
        && first.consumer.assignment.count == 2 && second.consumer.assignment.count == 2
    }
    #expect(first.stored.allSatisfy { $0 })
    #expect(first.consumer.epoch > epoch)

    // A partition that went to the other member takes no offset here any more.
    let gone = Set((0..<4).map { part($0) }).subtracting(first.consumer.assignment)
    #expect(gone.count == 2)
    for partition in gone {
      #expect(try first.consumer.storeOffset(partition, next: 100) == false)
      #expect(first.consumer.position(partition) == nil)
    }
    #expect(second.consumer.close(timeoutMilliseconds: 20_000))
    #expect(first.consumer.close(timeoutMilliseconds: 20_000))
    // Closing revokes through the handler, too.
    for member in [first, second] {
      #expect(member.recorder.events.last.map { if case .revoked = $0 { true } else { false } } == true)
    }
  }

  @Test func tellsOfLostPartitions() throws {
    let setup = try Setup(partitions: 2)
    let recorder = Recorder()
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.subscribe(["t"], handler: recorder)
    try eventually("the assignment") {
      try consumer.poll(max: 10, timeoutMilliseconds: 50) { _ in }
      return !recorder.events.isEmpty
    }
    // UNKNOWN_MEMBER_ID: the group has thrown this member out.
    try setup.broker.failNext(.heartbeat, codes: [25])
    try eventually("the loss") {
      try consumer.poll(max: 10, timeoutMilliseconds: 50) { _ in }
      return recorder.events.contains { if case .lost = $0 { true } else { false } }
    }
    #expect(recorder.events.contains(.lost([part(0), part(1)])))
    _ = consumer.close(timeoutMilliseconds: 20_000)
  }
}
