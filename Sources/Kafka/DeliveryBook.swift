internal import CRdKafka
internal import Dispatch
internal import Synchronization

/// Counts delivery reports, hands each to its receiver, and wakes who waits for room in the queue.
final class DeliveryBook: Sendable {
  private let delivered = Atomic<Int>(0)
  private let failed = Atomic<Int>(0)
  private let firstFailure = Mutex<KafkaError?>(nil)
  private let waiting = Atomic<Int>(0)
  private let room = DispatchSemaphore(value: 0)

  var counts: (delivered: Int, failed: Int, firstFailure: KafkaError?) {
    // Failures are read last, so that a report between the two reads never makes a failure look like nothing at all.
    let delivered = delivered.load(ordering: .acquiring)
    return (delivered, failed.load(ordering: .acquiring), firstFailure.withLock { $0 })
  }

  /// Called by librdkafka, once for every record it took, from whichever thread polls.
  func record(_ message: UnsafePointer<rd_kafka_message_t>, state: ClientState) {
    let code = unsafe message.pointee.err
    var failure: KafkaError?
    if code == RD_KAFKA_RESP_ERR_NO_ERROR {
      delivered.add(1, ordering: .releasing)
      state.works()
    } else {
      let error = unsafe state.explain(
        code, "sending a record to \(DeliveryBook.topic(of: message))", remedy: DeliveryBook.remedy(code),
        namesLogin: false)
      failure = error
      firstFailure.withLock { if $0 == nil { $0 = error } }
      failed.add(1, ordering: .releasing)
    }
    if waiting.load(ordering: .acquiring) > 0 { room.signal() }
    guard let opaque = unsafe message.pointee._private else { return }
    let receiver = unsafe Unmanaged<DeliveryReceiver>.fromOpaque(opaque).takeRetainedValue()
    if let failure { return receiver.body(.failure(failure)) }
    let partition = unsafe TopicPartition(
      topic: DeliveryBook.topic(of: message), partition: message.pointee.partition)
    let offset = unsafe message.pointee.offset
    receiver.body(.success(Delivery(partition: partition, offset: offset >= 0 ? offset : nil)))
  }

  /// Waits until a report has made room in the queue, at most `milliseconds`.
  func waitForRoom(milliseconds: Int) {
    waiting.add(1, ordering: .acquiringAndReleasing)
    _ = room.wait(timeout: .now() + .milliseconds(milliseconds))
    waiting.subtract(1, ordering: .acquiringAndReleasing)
  }

  static func remedy(_ code: rd_kafka_resp_err_t) -> String? {
    switch code {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      "Send less, or raise message.max.bytes of the client and max.message.bytes of the topic"
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
      RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      "Create the topic first, or check its name"
    default: nil
    }
  }

  private static func topic(of message: UnsafePointer<rd_kafka_message_t>) -> String {
    guard let topic = unsafe message.pointee.rkt, let name = unsafe rd_kafka_topic_name(topic) else { return "?" }
    return unsafe String(cString: name)
  }
}

/// What is called with one record's outcome; librdkafka carries it as the message's opaque pointer.
final class DeliveryReceiver: Sendable {
  let body: @Sendable (Result<Delivery, KafkaError>) -> Void
  init(_ body: @escaping @Sendable (Result<Delivery, KafkaError>) -> Void) { self.body = body }
}

/// Lets calls in and, once shut, tells when the last of them has left, so that a handle can be destroyed behind them.
final class Gate: Sendable {
  private let state = Mutex<(inside: Int, isShut: Bool)>((0, false))
  private let empty = DispatchSemaphore(value: 0)

  /// False when the gate is shut; otherwise ``leave()`` must follow.
  func enter() -> Bool {
    state.withLock {
      if $0.isShut { return false }
      $0.inside += 1
      return true
    }
  }

  func leave() {
    let isLast = state.withLock {
      $0.inside -= 1
      return $0.isShut && $0.inside == 0
    }
    if isLast { empty.signal() }
  }

  var isShut: Bool { state.withLock { $0.isShut } }

  /// Shuts the gate and waits for those inside. False when it was shut before; nil when they didn't leave in time.
  func shut(waiting timeout: DispatchTimeInterval) -> Bool? {
    let (wasShut, inside) = state.withLock {
      let before = ($0.isShut, $0.inside)
      $0.isShut = true
      return before
    }
    if wasShut { return false }
    if inside == 0 { return true }
    return empty.wait(timeout: .now() + timeout) == .success ? true : nil
  }
}
