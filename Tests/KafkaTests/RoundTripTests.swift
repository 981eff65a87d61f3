import Kafka
import Testing

/// What is sent is what is read, byte for byte.
@Suite struct RoundTripTests {
  @Test func keepsNullAndEmptyApart() throws {
    let setup = try Setup()
    let producer = try setup.producer()
    let records = [
      ProducerRecord(topic: "t", key: nil, value: nil),
      ProducerRecord(topic: "t", key: [], value: []),
      ProducerRecord(topic: "t", key: [0, 255], value: [1, 2, 3], timestamp: 1_785_000_000_123),
      ProducerRecord(topic: "t", key: [7], value: nil),
    ]
    try producer.sendAndWait(records, timeoutMilliseconds: 30_000)

    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(), .beginning)])
    var tombstones = 0
    var read: [OwnedRecord] = []
    try eventually("four records") {
      try consumer.poll(max: 10, timeoutMilliseconds: 50) { record in
        if record.isTombstone { tombstones += 1 }
        read.append(record.owned())
      }
      return read.count >= 4
    }
    #expect(read.map(\.key) == [nil, [], [0, 255], [7]])
    #expect(read.map(\.value) == [nil, [], [1, 2, 3], nil])
    #expect(read.map(\.offset) == [0, 1, 2, 3])
    #expect(read[2].timestampMilliseconds == 1_785_000_000_123)
    #expect(tombstones == 2)
    #expect(consumer.close(timeoutMilliseconds: 10_000))
  }

  @Test func keepsHeaders() throws {
    let setup = try Setup()
    let producer = try setup.producer()
    let headers = [
      Header("ce_type", "follow"), Header(name: "null", value: nil), Header(name: "empty", value: []),
      Header(name: "bytes", value: [0, 1, 255]), Header("ce_type", "again"),
    ]
    try producer.sendAndWait(
      [ProducerRecord(topic: "t", value: [1], headers: headers), ProducerRecord(topic: "t", value: [2])],
      timeoutMilliseconds: 30_000)

    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(), .beginning)])
    var last: [String?] = []
    var read: [OwnedRecord] = []
    try eventually("two records") {
      try consumer.poll(max: 10, timeoutMilliseconds: 50) { record in
        last.append(
          record.withHeader("ce_type") { value in
            guard let value else { return nil }
            return String(decoding: Array(copying: value), as: UTF8.self)
          })
        read.append(record.owned())
      }
      return read.count >= 2
    }
    #expect(read[0].headers == headers)
    #expect(read[1].headers.isEmpty)
    #expect(last == ["again", nil])
  }

  @Test func sendsFromBorrowedMemory() throws {
    let setup = try Setup(partitions: 3)
    let producer = try setup.producer()
    let key = "key"
    let value: [UInt8] = Array(repeating: 65, count: 300)
    try producer.send(topic: "t", key: key.utf8.span, value: value.span, timestamp: 5, partition: 2) { headers in
      headers.add("ce_id", "42")
      headers.add("none", nil as Span<UInt8>?)
    }
    try producer.send(topic: "t", key: nil, value: nil, partition: 2)
    try producer.flush(timeoutMilliseconds: 30_000)
    #expect(producer.counts.delivered == 2)

    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(2), .beginning)])
    let read = try consumer.take(2)
    #expect(read[0].key == Array("key".utf8))
    #expect(read[0].value == value)
    #expect(read[0].headers == [Header("ce_id", "42"), Header(name: "none", value: nil)])
    #expect(read[0].timestampMilliseconds == 5)
    #expect(read[1].key == nil && read[1].value == nil)
  }

  @Test func takesNoMoreThanAskedFor() throws {
    let setup = try Setup()
    try setup.fill(0..<50)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(), .beginning)])
    var sizes: [Int] = []
    var texts: [String?] = []
    try eventually("fifty records") {
      let count = try consumer.poll(max: 7, timeoutMilliseconds: 50, lingerMilliseconds: 20) {
        texts.append($0.owned().text)
      }
      sizes.append(count)
      return texts.count >= 50
    }
    #expect(sizes.allSatisfy { $0 <= 7 })
    #expect(texts == (0..<50).map { "\($0)" })
  }

  @Test func namesTopicsByIndex() throws {
    let setup = try Setup()
    try setup.broker.createTopic("u", partitions: 2)
    let producer = try setup.producer()
    try producer.sendAndWait(
      [
        ProducerRecord(topic: "t", value: [1]), ProducerRecord(topic: "u", value: [2], partition: 1),
        ProducerRecord(topic: "u", value: [3], partition: 0),
      ], timeoutMilliseconds: 30_000)
    let consumer = try Consumer(setup.configuration, group: "g")
    try consumer.assign([(part(of: "t"), .beginning), (part(of: "u"), .beginning), (part(1, of: "u"), .beginning)])
    var found: [UInt8: String] = [:]
    try eventually("three records") {
      try consumer.poll(max: 10, timeoutMilliseconds: 50) { record in
        let value = record.withValue { span in
          guard let span else { return UInt8(0) }
          return span[0]
        }
        found[value] = "\(consumer.topicNames[record.topicIndex])[\(record.partition)]"
      }
      return found.count == 3
    }
    #expect(found == [1: "t[0]", 2: "u[1]", 3: "u[0]"])
  }
}
