import Foundation
import Kafka
import SocialEvents
import Testing

/// Dead letters that tests write by hand, and what the commands say of them.
extension Deployment {
  /// A letter as a worker would have written it.
  /// - Parameters:
  ///   - minute: of a made-up hour, when it became a dead letter.
  ///   - timestamp: the original record's.
  func deadLetter(
    _ reason: String, from topic: String, key: [UInt8]? = Array("k".utf8), value: [UInt8]?, headers: [Header] = [],
    message: String = "because", minute: Int = 0, timestamp: Int64 = 1_714_557_600_123, partition: Int32? = nil
  ) -> ProducerRecord {
    ProducerRecord(
      topic: topics.deadLetters, key: key, value: value,
      headers: headers + [
        Header("fanout.dlq.reason", reason), Header("fanout.dlq.message", message), Header("fanout.dlq.topic", topic),
        Header("fanout.dlq.partition", "0"), Header("fanout.dlq.offset", "7"),
        Header("fanout.dlq.timestamp", "\(timestamp)"), Header("fanout.dlq.attempt", "1"),
        Header("fanout.dlq.group", group),
      ],
      // 2024-05-01T12:00:00Z and so many minutes.
      timestamp: 1_714_564_800_000 + Int64(minute) * 60_000, partition: partition)
  }

  /// A letter whose record is a valid event.
  func deadFollow(_ actor: String, _ reason: String = "refused", partition: Int32? = nil) -> ProducerRecord {
    deadLetter(
      reason, from: topics.name(of: .follows), key: Array("\(actor)\u{1F}x".utf8),
      value: Array(#"{"actor":"\#(actor)","target":"x"}"#.utf8),
      headers: InvalidRecords.headers(["ce_id": actor]), partition: partition)
  }

  /// What `dead-letters list --json` prints.
  func listedLetters(_ options: [String] = []) async throws -> [[String: Any]] {
    try await run(["dead-letters", "list", "--json", "--limit", "100000"] + options).lines.map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
    }
  }

  func letterIDs(_ options: [String] = []) async throws -> [String] {
    try await listedLetters(options).compactMap { $0["id"] as? String }
  }

  /// The actors of the follows that lie in their topic, in no order.
  func followers() throws -> [String] {
    try records(of: [topics.name(of: .follows)]).compactMap { $0.header("ce_id") }
  }

  /// What the groups of the commands have committed, and where the topics end: all that a command may have changed.
  func kafkaState() throws -> [String: Int64] {
    var state: [String: Int64] = [:]
    for name in ["fanout-redrive", group] {
      let consumer = try Consumer(client, group: name, commitsStoredOffsets: false)
      defer { consumer.close(timeoutMilliseconds: 2000) }
      let partitions = try consumer.partitions(of: topics.all)
      for (partition, commit) in try consumer.committedWithNotes(partitions) {
        state["\(name) \(partition) \(commit.note)"] = commit.next
      }
      for (partition, marks) in try consumer.watermarks(partitions) { state["end \(partition)"] = marks.high }
    }
    return state
  }
}
