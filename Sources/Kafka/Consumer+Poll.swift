internal import CRdKafka
internal import Synchronization

extension Consumer {
  /// Waits for records and calls `body` for each, in place.
  ///
  /// Waits at most `timeoutMilliseconds` for the first record, then takes what is there, up to `max` records, waiting at
  /// most `lingerMilliseconds` more for further ones. Returns early, also with zero records, when something else
  /// happened: a rebalance, an error, the end of a partition.
  ///
  /// Rebalances are carried out at the end of the call, after its records have been handed to `body`: a revoke comes
  /// when everything fetched before it has been seen, and nothing of the next assignment has.
  ///
  /// - Parameters:
  ///   - mayTake: asked now and then how many more records there is room for, however large they are; none ends the poll.
  ///   - body: must not call the consumer. The record is gone when it returns.
  /// - Returns: how many records were handed over.
  /// - Throws: what the group or a partition reported (unknown topic, no authorization, fatal). The records before it were
  ///   handed over. Brokers out of reach are not thrown, as librdkafka goes on trying: see ``problem``.
  @discardableResult
  public func poll(
    max: Int, timeoutMilliseconds: Int, lingerMilliseconds: Int = 0, mayTake: () -> Int = { .max },
    _ body: (borrowing ConsumedRecord) -> Void
  ) throws(KafkaError) -> Int {
    guard phase == .open else { throw .closed("polling") }
    guard max > 0 else { return 0 }
    // The batch call waits until it is full or its whole timeout is over, so the first record is waited for alone.
    let wait = Swift.min(timeoutMilliseconds, 5)
    var (taken, count) = receive(1, cMilliseconds(wait), body)
    if taken == 0 {
      wakeFetchers()
      if timeoutMilliseconds > wait { (taken, count) = receive(1, cMilliseconds(timeoutMilliseconds - wait), body) }
    }
    if taken > 0 {
      let deadline = Deadline(milliseconds: count > 0 ? lingerMilliseconds : 0)
      while count < max, !hasRebalance, pendingError == nil {
        let room = unsafe Swift.min(max - count, slots.count, mayTake())
        if room <= 0 { break }
        let more = receive(room, deadline.remaining, body)
        count += more.records
        taken = more.taken
        if taken < room { break }
      }
    }
    if count >= max { noteFullPoll() }
    serveRebalances()
    if let error = pendingError {
      pendingError = nil
      throw error
    }
    return count
  }

  private var hasRebalance: Bool { client.state.rebalances.withLock { !$0.isEmpty } }

  /// One batch call. `taken` counts everything that came, `records` what was handed to `body`.
  private func receive(
    _ room: Int, _ timeout: Int32, _ body: (borrowing ConsumedRecord) -> Void
  ) -> (taken: Int, records: Int) {
    let taken = unsafe rd_kafka_consume_batch_queue(queue, timeout, slots.baseAddress, room)
    guard taken > 0 else {
      if taken < 0 { note(KafkaError(rd_kafka_last_error(), "reading from Kafka")) }
      return (0, 0)
    }
    // Each message of the batch holds its topic object, so within the batch a pointer stands for one topic.
    unsafe batchTopics.removeAll(keepingCapacity: true)
    // All are looked up before the first is destroyed, or a topic's memory might serve another meanwhile.
    var records = 0
    for slot in 0..<taken {
      guard let message = unsafe slots[slot] else { continue }
      if unsafe message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR {
        if let index = unsafe topicIndex(of: message) {
          let (partition, offset) = unsafe (Int(message.pointee.partition), message.pointee.offset)
          growProgress(index, partition)
          progress[index][partition] = Progress(next: offset + 1, end: -1)
          unsafe body(ConsumedRecord(message, topicIndex: index, topic: topicNames[index]))
          records += 1
        }
      } else {
        unsafe reported(message)
      }
      unsafe rd_kafka_message_destroy(message)
      unsafe slots[slot] = nil
    }
    if records > 0 { client.state.works() }
    return (taken, records)
  }

  private func topicIndex(of message: UnsafeMutablePointer<rd_kafka_message_t>) -> Int? {
    guard let pointer = unsafe message.pointee.rkt else { return nil }
    for position in unsafe batchTopics.indices where unsafe batchTopics[position].pointer == pointer {
      return unsafe batchTopics[position].index
    }
    guard let name = unsafe rd_kafka_topic_name(pointer) else { return nil }
    let found = unsafe index(ofTopic: String(cString: name))
    unsafe batchTopics.append((pointer, found))
    return found
  }

  private func growProgress(_ topic: Int, _ partition: Int) {
    while progress[topic].count <= partition { progress[topic].append(Progress()) }
  }

  /// A message that is a report: the end of a partition, or an error with its text where a record has its value.
  private func reported(_ message: UnsafeMutablePointer<rd_kafka_message_t>) {
    let code = unsafe message.pointee.err
    let index = unsafe topicIndex(of: message)
    let partition = unsafe message.pointee.partition
    if code == RD_KAFKA_RESP_ERR__PARTITION_EOF {
      guard let index, partition >= 0 else { return }
      growProgress(index, Int(partition))
      unsafe progress[index][Int(partition)].end = message.pointee.offset
      client.state.works()
      return
    }
    let text = unsafe rd_kafka_message_errstr(message).map { unsafe String(cString: $0) }
    let doing =
      if let index {
        partition >= 0
          ? "reading \(topicNames[index])[\(partition)] as group \(group)"
          : "reading topic \(topicNames[index]) as group \(group)"
      } else {
        "reading as group \(group)"
      }
    let remedy =
      code == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED
      ? "The consumer was not polled in time and lost its partitions: poll oftener or raise max.poll.interval.ms"
      : DeliveryBook.remedy(code)
    note(client.state.explain(code, doing, detail: text.map(client.state.redact), remedy: remedy))
  }

  /// Keeps the first error for the end of the poll; the others are only reported.
  func note(_ error: KafkaError) {
    client.state.report(ClientEvent(level: .error, facility: error.name, message: error.message, error: error))
    if pendingError == nil { pendingError = error }
  }
}
