/// Is told when partitions come and go.
///
/// All methods are called on the thread that owns the consumer, inside
/// ``Consumer/poll(max:timeoutMilliseconds:lingerMilliseconds:_:)`` or ``Consumer/close(timeoutMilliseconds:)``, after
/// the records of that poll have been handed over. The lists may be empty: a member may be left without a partition.
public protocol RebalanceHandler: AnyObject {
  /// The partitions are this consumer's from now on; records follow with the next poll. They may be paused here, but
  /// not yet be sought.
  func assigned(_ partitions: [TopicPartition], by consumer: Consumer)
  /// The partitions will be another's when this returns: finish what is under way, store and commit its offsets.
  ///
  /// The group waits for it, at most `max.poll.interval.ms` (five minutes unless configured).
  func revoked(_ partitions: [TopicPartition], by consumer: Consumer)
  /// The partitions are another's already (the session timed out): drop what is under way; commits will be refused.
  func lost(_ partitions: [TopicPartition], by consumer: Consumer)
}
