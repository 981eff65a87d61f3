internal import CRdKafka
internal import Dispatch
internal import Synchronization

extension Producer {
  /// Queues a record; its bytes are copied.
  ///
  /// When the local queue is full this waits for room, at most the message timeout (two minutes; five in bulk mode): it
  /// never drops a record silently.
  ///
  /// - Parameter onDelivery: called once with the outcome, on the producer's own thread or on one that flushes or closes.
  ///   It must be quick, and a `send` from inside it does not wait for room but throws "queue full".
  /// - Throws: what can be known at once: too large, unknown partition, closed, failed for good. `onDelivery` is then
  ///   not called.
  public func send(
    _ record: ProducerRecord, onDelivery: (@Sendable (Result<Delivery, KafkaError>) -> Void)? = nil
  ) throws(KafkaError) {
    try send(record, receiver: onDelivery.map { DeliveryReceiver($0) })
  }

  /// Queues a record from memory the caller holds, without making arrays of it. Otherwise like ``send(_:onDelivery:)``.
  public func send(
    topic: String, key: Span<UInt8>?, value: Span<UInt8>?, timestamp: Int64? = nil, partition: Int32? = nil,
    onDelivery: (@Sendable (Result<Delivery, KafkaError>) -> Void)? = nil
  ) throws(KafkaError) {
    try enqueue(
      topic: topic, key: key, value: value, headers: nil, timestamp: timestamp, partition: partition,
      receiver: onDelivery.map { DeliveryReceiver($0) })
  }

  /// Queues a record from memory the caller holds, with the headers that `headers` adds.
  public func send(
    topic: String, key: Span<UInt8>?, value: Span<UInt8>?, timestamp: Int64? = nil, partition: Int32? = nil,
    headerCapacity: Int = 8, onDelivery: (@Sendable (Result<Delivery, KafkaError>) -> Void)? = nil,
    headers: (borrowing HeaderWriter) -> Void
  ) throws(KafkaError) {
    guard let writer = HeaderWriter(capacity: headerCapacity) else {
      throw KafkaError(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "adding headers to a record for \(topic)")
    }
    headers(writer)
    try enqueue(
      topic: topic, key: key, value: value, headers: writer, timestamp: timestamp, partition: partition,
      receiver: onDelivery.map { DeliveryReceiver($0) })
  }

  /// Sends records and returns when the brokers have acknowledged all of them.
  ///
  /// - Throws: the first failure, or a timeout when acknowledgements are missing at the deadline. Some of the records may
  ///   have been stored then: send the whole list again; consumers must converge.
  public func sendAndWait(_ records: [ProducerRecord], timeoutMilliseconds: Int) throws(KafkaError) {
    if records.isEmpty { return }
    let deadline = Deadline(milliseconds: timeoutMilliseconds)
    let batch = Acknowledgements(count: records.count)
    let receiver = DeliveryReceiver { batch.report($0) }
    for record in records { try send(record, receiver: receiver, deadline: deadline) }
    guard batch.wait(milliseconds: Int(deadline.remaining)) else {
      throw client.state.explain(
        RD_KAFKA_RESP_ERR__TIMED_OUT,
        "\(batch.missing) of \(records.count) records are not acknowledged after \(timeoutMilliseconds) ms",
        namesLogin: false)
    }
    if let failure = batch.firstFailure { throw failure }
  }

  private func send(_ record: ProducerRecord, receiver: DeliveryReceiver?, deadline: Deadline? = nil) throws(KafkaError)
  {
    let writer = record.headers.isEmpty ? nil : HeaderWriter(capacity: record.headers.count)
    if let writer {
      for header in record.headers {
        if let value = header.value { writer.add(header.name, value.span) } else { writer.add(header.name, nil) }
      }
      try enqueue(
        topic: record.topic, key: record.key?.span, value: record.value?.span, headers: writer,
        timestamp: record.timestamp, partition: record.partition, receiver: receiver, deadline: deadline)
    } else {
      try enqueue(
        topic: record.topic, key: record.key?.span, value: record.value?.span, headers: nil,
        timestamp: record.timestamp, partition: record.partition, receiver: receiver, deadline: deadline)
    }
  }

  /// Hands one record to librdkafka, waiting for room.
  private func enqueue(
    topic: String, key: Span<UInt8>?, value: Span<UInt8>?, headers: consuming HeaderWriter?, timestamp: Int64?,
    partition: Int32?, receiver: DeliveryReceiver?, deadline: Deadline? = nil
  ) throws(KafkaError) {
    if let partition, partition < 0 {
      throw KafkaError(
        RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, "sending a record to \(topic)",
        detail: "there is no partition \(partition)")
    }
    guard gate.enter() else { throw .closed("sending a record to \(topic)") }
    defer { gate.leave() }
    let opaque = unsafe receiver.map { unsafe Unmanaged.passRetained($0).toOpaque() }
    var limit: Deadline?
    while true {
      let failure = unsafe produce(
        topic: topic, key: key, value: value, headers: headers?.pointer, timestamp: timestamp, partition: partition,
        opaque: opaque)
      guard let failure = unsafe failure else {
        headers?.release()
        return
      }
      let isFull = unsafe rd_kafka_error_code(failure) == RD_KAFKA_RESP_ERR__QUEUE_FULL
      let deadline = limit ?? deadline ?? Deadline(milliseconds: messageTimeoutMilliseconds)
      limit = deadline
      if isFull, !service.isCurrent, !gate.isShut, !deadline.hasPassed {
        unsafe rd_kafka_error_destroy(failure)
        // Woken by the next delivery report; the bound covers a report that came before the wait.
        client.state.deliveries.waitForRoom(milliseconds: min(Int(deadline.remaining), 50))
        continue
      }
      // Not taken: there will be no report, and header list and receiver are still ours.
      if let opaque = unsafe opaque { unsafe Unmanaged<DeliveryReceiver>.fromOpaque(opaque).release() }
      let code = unsafe rd_kafka_error_code(failure)
      throw unsafe KafkaError.consuming(failure, "sending a record to \(topic)", remedy: DeliveryBook.remedy(code))
    }
  }

  /// One attempt. Returns librdkafka's error object, or nil when the record was taken.
  private func produce(
    topic: String, key: Span<UInt8>?, value: Span<UInt8>?, headers: OpaquePointer?, timestamp: Int64?,
    partition: Int32?,
    opaque: UnsafeMutableRawPointer?
  ) -> OpaquePointer? {
    unsafe withUnsafeTemporaryAllocation(of: rd_kafka_vu_t.self, capacity: 8) { arguments in
      unsafe topic.withCString { topic in
        unsafe withBytes(key) { key, keyCount in
          unsafe withBytes(value) { value, valueCount in
            var count = 0
            func append(_ type: rd_kafka_vtype_t, _ fill: (inout rd_kafka_vu_t) -> Void) {
              var argument = unsafe rd_kafka_vu_t()
              unsafe argument.vtype = type
              unsafe fill(&argument)
              unsafe arguments.initializeElement(at: count, to: argument)
              count += 1
            }
            unsafe append(RD_KAFKA_VTYPE_TOPIC) { unsafe $0.u.cstr = topic }
            // Without the flag librdkafka keeps our pointer, which is gone by the time it sends.
            unsafe append(RD_KAFKA_VTYPE_MSGFLAGS) { unsafe $0.u.i = RD_KAFKA_MSG_F_COPY }
            if let partition { unsafe append(RD_KAFKA_VTYPE_PARTITION) { unsafe $0.u.i32 = partition } }
            if let timestamp { unsafe append(RD_KAFKA_VTYPE_TIMESTAMP) { unsafe $0.u.i64 = timestamp } }
            unsafe append(RD_KAFKA_VTYPE_KEY) {
              unsafe $0.u.mem = .init(ptr: UnsafeMutableRawPointer(mutating: key), size: keyCount)
            }
            unsafe append(RD_KAFKA_VTYPE_VALUE) {
              unsafe $0.u.mem = .init(ptr: UnsafeMutableRawPointer(mutating: value), size: valueCount)
            }
            if let headers = unsafe headers { unsafe append(RD_KAFKA_VTYPE_HEADERS) { unsafe $0.u.headers = headers } }
            if let opaque = unsafe opaque { unsafe append(RD_KAFKA_VTYPE_OPAQUE) { unsafe $0.u.ptr = opaque } }
            return unsafe rd_kafka_produceva(client.pointer, arguments.baseAddress, count)
          }
        }
      }
    }
  }

  /// Null stays null, empty gets an address: librdkafka tells them apart by the pointer.
  private func withBytes<R>(_ span: Span<UInt8>?, _ body: (UnsafeRawPointer?, Int) -> R) -> R {
    guard let span else { return body(nil, 0) }
    return unsafe span.withNonNullBytes { unsafe body($0, $1) }
  }
}

/// Waits for the delivery reports of one list of records.
private final class Acknowledgements: Sendable {
  private let state: Mutex<(missing: Int, firstFailure: KafkaError?)>
  private let done = DispatchSemaphore(value: 0)

  init(count: Int) { state = Mutex((count, nil)) }

  func report(_ result: Result<Delivery, KafkaError>) {
    let isLast = state.withLock {
      if case .failure(let error) = result, $0.firstFailure == nil { $0.firstFailure = error }
      $0.missing -= 1
      return $0.missing == 0
    }
    if isLast { done.signal() }
  }

  var missing: Int { state.withLock { $0.missing } }
  var firstFailure: KafkaError? { state.withLock { $0.firstFailure } }
  func wait(milliseconds: Int) -> Bool { done.wait(timeout: .now() + .milliseconds(milliseconds)) == .success }
}
