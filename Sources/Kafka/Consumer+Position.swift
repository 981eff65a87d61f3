internal import CRdKafka

extension Consumer {
  // MARK: Pausing and seeking

  /// Stops fetching these partitions; the group membership is kept as long as the consumer is polled. What is paused
  /// already, or not assigned, is left alone.
  public func pause(_ partitions: [TopicPartition]) throws(KafkaError) {
    try open("pausing")
    let assigned = Set(assignment)
    let wanted = partitions.filter { assigned.contains($0) && !paused.contains($0) }
    if wanted.isEmpty { return }
    let list = PartitionList(wanted)
    let code = unsafe list.withPointer { unsafe rd_kafka_pause_partitions(client.pointer, $0) }
    try check(list, code, "pausing")
    paused.formUnion(wanted)
  }

  /// Goes on after the last record that was delivered. What isn't paused is left alone: resuming it would deliver
  /// records again (#4637).
  public func resume(_ partitions: [TopicPartition]) throws(KafkaError) {
    try open("resuming")
    let wanted = paused.intersection(partitions)
    if wanted.isEmpty { return }
    let list = PartitionList(wanted)
    let code = unsafe list.withPointer { unsafe rd_kafka_resume_partitions(client.pointer, $0) }
    try check(list, code, "resuming")
    paused.subtract(wanted)
  }

  /// What is paused at the moment.
  public var pausedPartitions: Set<TopicPartition> { paused }

  /// Moves to another position in an assigned partition; the next record is the one there.
  ///
  /// Not from ``RebalanceHandler/assigned(_:by:)``, where fetching has not begun. Store offsets before, not after.
  public func seek(
    _ partition: TopicPartition, to position: Position, timeoutMilliseconds: Int = 5_000
  ) throws(KafkaError) {
    let doing = "seeking in \(partition)"
    try open(doing)
    let list = PartitionList(CollectionOfOne(partition)) { _ in position.offset }
    // With a timeout of zero librdkafka would not report failures.
    let timeout = Swift.max(cMilliseconds(timeoutMilliseconds), 1)
    let error = unsafe list.withPointer { unsafe rd_kafka_seek_partitions(client.pointer, $0, timeout) }
    if let error = unsafe error { throw unsafe KafkaError.consuming(error, doing) }
    try check(list, RD_KAFKA_RESP_ERR_NO_ERROR, "seeking")
    forget([partition])
  }

  private func check(
    _ list: borrowing PartitionList, _ code: rd_kafka_resp_err_t, _ doing: String
  ) throws(KafkaError) {
    if let (partition, code) = list.firstError { throw KafkaError(code, "\(doing) \(partition)") }
    if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(code, doing) }
  }

  // MARK: How far it has read

  /// Whether everything in the partition has been delivered, as of the last answer of its broker.
  public func hasReachedEnd(_ partition: TopicPartition) -> Bool { endOffset(partition) != nil }

  /// The partition's end if the reading has reached it: the offset the next record will have, behind any gap that
  /// compaction or transactions left. Nil when records were delivered since, or nothing was.
  public func endOffset(_ partition: TopicPartition) -> Int64? {
    guard let progress = progress(of: partition), progress.end >= 0 else { return nil }
    return progress.end
  }

  /// The offset up to which everything has been delivered, gaps included; nil before the first record or end.
  public func position(_ partition: TopicPartition) -> Int64? {
    guard let progress = progress(of: partition) else { return nil }
    let position = Swift.max(progress.next, progress.end)
    return position >= 0 ? position : nil
  }

  private func progress(of partition: TopicPartition) -> Progress? {
    guard let index = topicNames.firstIndex(of: partition.topic) else { return nil }
    let number = Int(partition.partition)
    return progress[index].indices.contains(number) ? progress[index][number] : nil
  }
}
