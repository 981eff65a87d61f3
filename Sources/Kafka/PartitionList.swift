internal import CRdKafka
internal import Glibc

/// Owns an `rd_kafka_topic_partition_list_t`: destroyed on every path.
@safe struct PartitionList: ~Copyable {
  private let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

  /// A list of the given partitions, each with an offset where `offset` gives one.
  init(_ partitions: some Collection<TopicPartition>, offset: (TopicPartition) -> Int64? = { _ in nil }) {
    unsafe pointer = rd_kafka_topic_partition_list_new(Int32(clamping: partitions.count))
    for partition in partitions {
      let entry = unsafe rd_kafka_topic_partition_list_add(pointer, partition.topic, partition.partition)
      if let offset = offset(partition) { unsafe entry?.pointee.offset = offset }
    }
  }

  /// A list of partitions with the offsets and the notes that a group is to keep of them.
  init(_ commits: [TopicPartition: CommittedOffset]) {
    unsafe pointer = rd_kafka_topic_partition_list_new(Int32(clamping: commits.count))
    for (partition, commit) in commits {
      guard let entry = unsafe rd_kafka_topic_partition_list_add(pointer, partition.topic, partition.partition) else {
        continue
      }
      unsafe entry.pointee.offset = commit.next
      if commit.note.isEmpty { continue }
      // The list frees it with `free`.
      unsafe entry.pointee.metadata = UnsafeMutableRawPointer(strdup(commit.note))
      unsafe entry.pointee.metadata_size = commit.note.utf8.count
    }
  }

  /// Takes over a list that librdkafka returned to the caller.
  init(owning pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
    unsafe self.pointer = pointer
  }

  deinit { unsafe rd_kafka_topic_partition_list_destroy(pointer) }

  /// Lends the list to a C call. Only inside is it sure to live: a pointer taken out of a temporary list outlives it.
  func withPointer<R>(_ body: (UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) -> R) -> R {
    unsafe body(pointer)
  }

  /// Every entry: partition, offset, and its own error.
  func visit(_ body: (TopicPartition, Int64, rd_kafka_resp_err_t) -> Void) {
    unsafe PartitionList.visit(in: pointer, body)
  }

  /// The committed offset and the note of every entry that has them.
  var commits: [TopicPartition: CommittedOffset] {
    var commits: [TopicPartition: CommittedOffset] = [:]
    guard let elements = unsafe pointer.pointee.elems else { return commits }
    for index in 0..<Int(unsafe pointer.pointee.cnt) {
      let entry = unsafe elements[index]
      guard let topic = unsafe entry.topic, unsafe entry.offset >= 0 else { continue }
      let note = unsafe UnsafeRawBufferPointer(start: entry.metadata, count: entry.metadata_size)
      unsafe commits[TopicPartition(topic: String(cString: topic), partition: entry.partition)] =
        unsafe CommittedOffset(next: entry.offset, note: String(decoding: note, as: UTF8.self))
    }
    return commits
  }

  /// The first entry that carries an error of its own.
  var firstError: (partition: TopicPartition, code: rd_kafka_resp_err_t)? {
    var first: (partition: TopicPartition, code: rd_kafka_resp_err_t)?
    visit { partition, _, code in
      if first == nil, code != RD_KAFKA_RESP_ERR_NO_ERROR { first = (partition, code) }
    }
    return first
  }

  static func names(in pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?) -> [TopicPartition] {
    var names: [TopicPartition] = []
    unsafe visit(in: pointer) { partition, _, _ in names.append(partition) }
    return names
  }

  static func visit(
    in pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?,
    _ body: (TopicPartition, Int64, rd_kafka_resp_err_t) -> Void
  ) {
    guard let pointer = unsafe pointer, let elements = unsafe pointer.pointee.elems else { return }
    for index in 0..<Int(unsafe pointer.pointee.cnt) {
      let entry = unsafe elements[index]
      guard let topic = unsafe entry.topic else { continue }
      unsafe body(TopicPartition(topic: String(cString: topic), partition: entry.partition), entry.offset, entry.err)
    }
  }
}
