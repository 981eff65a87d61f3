internal import CRdKafka
internal import Dispatch
internal import Synchronization

extension Consumer {
  /// Carries out what librdkafka announced, in order. It announces the next step only when the last one is done.
  func serveRebalances() {
    while let next = client.state.rebalances.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
      epoch += 1
      switch next.kind {
      case .assign:
        forget(next.partitions)
        acknowledge(next.partitions, assigning: true)
        client.state.works()
        handler?.assigned(next.partitions, by: self)
      case .revoke:
        // Asked before the acknowledgement, which resets it.
        let isLost = unsafe rd_kafka_assignment_lost(client.pointer) != 0
        if isLost {
          handler?.lost(next.partitions, by: self)
        } else {
          handler?.revoked(next.partitions, by: self)
        }
        acknowledge(next.partitions, assigning: false)
        unpauseRevoked(next.partitions)
        forget(next.partitions)
      case .failure(let code):
        note(KafkaError(rd_kafka_resp_err_t(rawValue: code), "rebalancing group \(group)"))
        handler?.lost(assignment, by: self)
        // "In this latter case (arbitrary error), the application must call rd_kafka_assign(rk, NULL) to synchronize
        // state" (rd_kafka_conf_set_rebalance_cb).
        unsafe _ = rd_kafka_assign(client.pointer, nil)
        unpauseRevoked(Array(paused))
      }
    }
  }

  private func acknowledge(_ partitions: [TopicPartition], assigning: Bool) {
    let doing = "\(assigning ? "taking" : "giving up") partitions of group \(group)"
    let list = PartitionList(partitions)
    let isCooperative =
      unsafe rd_kafka_rebalance_protocol(client.pointer).map { unsafe String(cString: $0) } == "COOPERATIVE"
    if isCooperative {
      let error = unsafe list.withPointer {
        unsafe assigning
          ? rd_kafka_incremental_assign(client.pointer, $0) : rd_kafka_incremental_unassign(client.pointer, $0)
      }
      if let error = unsafe error { unsafe note(.consuming(error, doing)) }
    } else {
      let code = unsafe list.withPointer { unsafe rd_kafka_assign(client.pointer, assigning ? $0 : nil) }
      if code != RD_KAFKA_RESP_ERR_NO_ERROR { note(KafkaError(code, doing)) }
    }
  }

  /// librdkafka keeps a partition paused beyond its revocation: it would stay silent when it came back.
  func unpauseRevoked(_ partitions: [TopicPartition]) {
    let stale = paused.intersection(partitions)
    if stale.isEmpty { return }
    paused.subtract(stale)
    let list = PartitionList(stale)
    unsafe _ = list.withPointer { unsafe rd_kafka_resume_partitions(client.pointer, $0) }
  }

  /// Forgets how far the partitions were read.
  func forget(_ partitions: [TopicPartition]) {
    for partition in partitions {
      guard let index = topicNames.firstIndex(of: partition.topic),
        progress[index].indices.contains(Int(partition.partition))
      else { continue }
      progress[index][Int(partition.partition)] = Progress()
    }
  }

  /// Leaves the group, after the handler's ``RebalanceHandler/revoked(_:by:)``, and frees the client.
  ///
  /// librdkafka may block for ever here (#4187, #4724), so it is given a deadline; the handler is not, it has to bound
  /// itself.
  ///
  /// - Returns: false when it did not finish in time. What is stored may not be committed then, and the group may find out
  ///   only when the session times out; the client goes away in the background, if it can. Calling it again does nothing
  ///   and returns true.
  @discardableResult
  public func close(timeoutMilliseconds: Int) -> Bool {
    guard phase == .open else { return true }
    phase = .closing
    defer {
      phase = .closed
      handler = nil
    }
    let deadline = Deadline(milliseconds: timeoutMilliseconds)
    let hasLeft = leaveGroup(deadline)
    unsafe rd_kafka_queue_destroy(queue)
    // Not in order: the destruction must not try to close once more, which would wait for ever. It lets go of sockets and
    // threads when it can, and if the time is up nobody waits for that.
    let flags = hasLeft == true ? 0 : RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE
    let patience = hasLeft == false ? 0 : max(Int(deadline.remaining), 500)
    return client.destroy(within: .milliseconds(patience), flags: flags) && hasLeft != false
  }

  /// Nil when the client refuses to close in order, as one does that failed for good; false when the time was up.
  private func leaveGroup(_ deadline: Deadline) -> Bool? {
    guard let closing = unsafe rd_kafka_queue_new(client.pointer) else { return false }
    defer { unsafe rd_kafka_queue_destroy(closing) }
    if let error = unsafe rd_kafka_consumer_close_queue(client.pointer, closing) {
      client.state.report(
        ClientEvent(
          level: .warning, facility: "CLOSE",
          message: unsafe KafkaError.consuming(error, "closing the consumer").message,
          error: nil))
      handler?.lost(assignment, by: self)
      return nil
    }
    while unsafe rd_kafka_consumer_closed(client.pointer) == 0 {
      // Revokes and commits of the closing come here; records that were still under way are thrown away.
      let taken = unsafe rd_kafka_consume_batch_queue(closing, 100, slots.baseAddress, 64)
      for slot in 0..<Swift.max(taken, 0) {
        if let message = unsafe slots[slot] { unsafe rd_kafka_message_destroy(message) }
        unsafe slots[slot] = nil
      }
      serveRebalances()
      if deadline.hasPassed { return unsafe rd_kafka_consumer_closed(client.pointer) != 0 }
    }
    return true
  }
}
