internal import CRdKafka
internal import Glibc

extension Consumer {
  // MARK: Storing and committing

  /// Remembers that everything before `next` has been applied; committed with the next automatic commit, at a
  /// revocation and by ``commitStored(timeoutMilliseconds:)``.
  ///
  /// - Returns: false when the partition is not this consumer's any more: somebody else goes on from the last commit.
  public func storeOffset(_ partition: TopicPartition, next: Int64) throws(KafkaError) -> Bool {
    try open("storing an offset of \(partition)")
    let list = PartitionList(CollectionOfOne(partition)) { _ in next }
    let code = unsafe list.withPointer { unsafe rd_kafka_offsets_store(client.pointer, $0) }
    switch code == RD_KAFKA_RESP_ERR_NO_ERROR ? list.firstError?.code ?? code : code {
    case RD_KAFKA_RESP_ERR_NO_ERROR: return true
    // _STATE since 1.9: not assigned. Unknown: the topic was deleted.
    case RD_KAFKA_RESP_ERR__STATE, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION: return false
    case let code: throw KafkaError(code, "storing offset \(next) of \(partition)")
    }
  }

  /// Commits what has been stored, and waits for the broker's answer. Nothing stored is a success.
  ///
  /// For the revocation and the shutdown only (#4059).
  public func commitStored(timeoutMilliseconds: Int) throws(KafkaError) {
    try open("committing offsets of group \(group)")
    // "If offsets is NULL the current partition assignment will be used instead" (rd_kafka_commit).
    try unsafe commit(timeoutMilliseconds) { unsafe rd_kafka_commit_queue(client.pointer, nil, $0, nil, nil) }
  }

  /// Commits the given offsets (of the next record wanted) for the group, assigned here or not: progress of a replay, or
  /// a reset. Same restriction.
  public func commit(_ offsets: [TopicPartition: Int64], timeoutMilliseconds: Int) throws(KafkaError) {
    try open("committing offsets of group \(group)")
    if offsets.isEmpty { return }
    let list = PartitionList(offsets.keys) { offsets[$0] }
    try unsafe commit(timeoutMilliseconds) { queue in
      unsafe list.withPointer { unsafe rd_kafka_commit_queue(client.pointer, $0, queue, nil, nil) }
    }
  }

  /// The same with a note for each, which ``committedWithNotes(_:timeoutMilliseconds:)`` gives back.
  public func commit(_ commits: [TopicPartition: CommittedOffset], timeoutMilliseconds: Int) throws(KafkaError) {
    try open("committing offsets of group \(group)")
    if commits.isEmpty { return }
    let list = PartitionList(commits)
    try unsafe commit(timeoutMilliseconds) { queue in
      unsafe list.withPointer { unsafe rd_kafka_commit_queue(client.pointer, $0, queue, nil, nil) }
    }
  }

  private func commit(
    _ timeoutMilliseconds: Int, _ send: (_ answers: OpaquePointer) -> rd_kafka_resp_err_t
  ) throws(KafkaError) {
    let doing = "committing offsets of group \(group)"
    // rd_kafka_commit waits without limit; with a queue of our own the wait has one.
    guard let answers = unsafe rd_kafka_queue_new(client.pointer) else {
      throw KafkaError(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, doing)
    }
    defer { unsafe rd_kafka_queue_destroy(answers) }
    let code = unsafe send(answers)
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw client.state.explain(code, doing) }
    let answer = unsafe rd_kafka_queue_poll(answers, cMilliseconds(timeoutMilliseconds))
    guard let answer = unsafe answer else {
      throw client.state.explain(
        RD_KAFKA_RESP_ERR__TIMED_OUT, doing, detail: "no answer after \(timeoutMilliseconds) ms")
    }
    defer { unsafe rd_kafka_event_destroy(answer) }
    var failure = unsafe rd_kafka_event_error(answer)
    if failure == RD_KAFKA_RESP_ERR_NO_ERROR {
      unsafe PartitionList.visit(in: rd_kafka_event_topic_partition_list(answer)) { _, _, code in
        if failure == RD_KAFKA_RESP_ERR_NO_ERROR { failure = code }
      }
    }
    if failure == RD_KAFKA_RESP_ERR_NO_ERROR || failure == RD_KAFKA_RESP_ERR__NO_OFFSET { return }
    throw client.state.explain(failure, doing)
  }

  /// The group's committed offsets of any partitions, also of those other members read. A partition without a commit is
  /// left out.
  public func committed(
    _ partitions: [TopicPartition], timeoutMilliseconds: Int = 10_000
  ) throws(KafkaError) -> [TopicPartition: Int64] {
    try committedWithNotes(partitions, timeoutMilliseconds: timeoutMilliseconds).mapValues(\.next)
  }

  /// The same, each with the note that was committed with it.
  public func committedWithNotes(
    _ partitions: [TopicPartition], timeoutMilliseconds: Int = 10_000
  ) throws(KafkaError) -> [TopicPartition: CommittedOffset] {
    let doing = "asking for the committed offsets of group \(group)"
    try open(doing)
    if partitions.isEmpty { return [:] }
    let list = PartitionList(partitions)
    let code = unsafe list.withPointer {
      unsafe rd_kafka_committed(client.pointer, $0, cMilliseconds(timeoutMilliseconds))
    }
    _ = try offsets(in: list, code, doing)
    return list.commits
  }

  // MARK: What a partition holds

  /// The offsets of a partition's oldest record and of the next one to be written.
  public func watermarks(
    _ partition: TopicPartition, timeoutMilliseconds: Int = 10_000
  ) throws(KafkaError) -> (low: Int64, high: Int64) {
    let found = try watermarks([partition], timeoutMilliseconds: timeoutMilliseconds)
    guard let marks = found[partition] else {
      throw KafkaError(
        RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, "asking for the first and last offset of \(partition)",
        remedy: "Create the topic first, or check its name")
    }
    return marks
  }

  /// The same of many partitions, with two requests to each of their brokers.
  public func watermarks(
    _ partitions: [TopicPartition], timeoutMilliseconds: Int = 10_000
  ) throws(KafkaError) -> [TopicPartition: (low: Int64, high: Int64)] {
    // rd_kafka_query_watermark_offsets doesn't keep its timeout while a broker is down (measured on 2.0.2: it does not
    // return); this call does, and the protocol takes "beginning" and "end" where it takes a time.
    let deadline = Deadline(milliseconds: timeoutMilliseconds)
    let doing = "asking for the first and last offsets"
    let low = try offsets(Int64(RD_KAFKA_OFFSET_BEGINNING), partitions, deadline, doing)
    let high = try offsets(Int64(RD_KAFKA_OFFSET_END), partitions, deadline, doing)
    var marks: [TopicPartition: (low: Int64, high: Int64)] = [:]
    for (partition, low) in low { if let high = high[partition] { marks[partition] = (low, high) } }
    return marks
  }

  /// The offset of each partition's first record of that time or later. A partition that has none is left out.
  ///
  /// - Parameter milliseconds: since 1970 UTC.
  public func offsets(
    forTime milliseconds: Int64, _ partitions: [TopicPartition], timeoutMilliseconds: Int = 10_000
  ) throws(KafkaError) -> [TopicPartition: Int64] {
    // Below zero are the protocol's "beginning" and "end".
    try offsets(
      max(milliseconds, 0), partitions, Deadline(milliseconds: timeoutMilliseconds), "asking for the offset of a time")
  }

  private func offsets(
    _ time: Int64, _ partitions: [TopicPartition], _ deadline: Deadline, _ doing: String
  ) throws(KafkaError) -> [TopicPartition: Int64] {
    try open(doing)
    if partitions.isEmpty { return [:] }
    let named = partitions.prefix(3).map(\.description).joined(separator: ", ") + (partitions.count > 3 ? ", …" : "")
    let doing = "\(doing) of \(named)"
    while true {
      let list = PartitionList(partitions) { _ in time }
      let code = unsafe list.withPointer { unsafe rd_kafka_offsets_for_times(client.pointer, $0, deadline.remaining) }
      do {
        return try offsets(in: list, code, doing)
      } catch {
        // A topic that was just made, or a leader that just changed: the next answer comes from the right broker.
        guard error.code >= 0, error.isRetriable, !deadline.hasPassed else { throw error }
        usleep(50_000)
      }
    }
  }

  /// All partitions of the topics.
  ///
  /// - Throws: a topic that doesn't exist, by name; brokers that can't be reached.
  public func partitions(
    of topics: [String], timeoutMilliseconds: Int = 10_000
  ) throws(KafkaError) -> [TopicPartition] {
    try open("asking for partitions")
    var partitions: [TopicPartition] = []
    for topic in topics {
      let count = try Metadata.partitionCount(of: topic, client: client, timeoutMilliseconds: timeoutMilliseconds)
      for number in 0..<Int32(clamping: count) { partitions.append(TopicPartition(topic: topic, partition: number)) }
    }
    return partitions
  }

  private func offsets(
    in list: borrowing PartitionList, _ code: rd_kafka_resp_err_t, _ doing: String
  ) throws(KafkaError) -> [TopicPartition: Int64] {
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
      // Newer versions forget partitions while no broker is there, and don't know them then.
      if code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, client.state.isInTrouble {
        throw client.state.explain(RD_KAFKA_RESP_ERR__TRANSPORT, doing)
      }
      throw client.state.explain(code, doing, remedy: DeliveryBook.remedy(code))
    }
    if let (partition, code) = list.firstError {
      throw client.state.explain(code, "\(doing) (\(partition))", remedy: DeliveryBook.remedy(code))
    }
    client.state.works()
    var offsets: [TopicPartition: Int64] = [:]
    // Negative: no commit, or no record that late.
    list.visit { partition, offset, _ in if offset >= 0 { offsets[partition] = offset } }
    return offsets
  }
}
