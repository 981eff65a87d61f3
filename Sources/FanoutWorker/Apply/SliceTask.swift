package import FanoutStore
package import Kafka
package import SocialEvents

/// How a slice of a fan-out is written on `social.fanout-tasks`.
///
/// The key says it all: `author␟post␟index␟count`, joined by U+001F. So the delivery and the retraction of one range have the
/// same key, and since a task carries nothing but "bring this range in line with the facts", only the last of a key matters.
/// The value repeats the key in words for people who look at the topic.
package enum SliceTask {
  private static let separator: Character = "\u{1F}"

  package static func producerRecord(_ slice: FanoutSlice, topic: String, traceparent: String?) -> ProducerRecord {
    let key = "\(slice.post.key)\(separator)\(slice.index)\(separator)\(slice.count)"
    var value = Array(#"{"author":"#.utf8)
    appendJSONString(slice.post.author.string, to: &value)
    value += Array(#","post":"#.utf8)
    appendJSONString(slice.post.id.string, to: &value)
    value += Array(#","slice":\#(slice.index),"of":\#(slice.count)}"#.utf8)
    return ProducerRecord(
      topic: topic, key: Array(key.utf8), value: value, headers: traceparent.map { [Header("traceparent", $0)] } ?? [],
      timestamp: nil, partition: nil)
  }

  package static func slice(key: Span<UInt8>) throws(InvalidEvent) -> FanoutSlice {
    let parts = String(decoding: Array(copying: key), as: UTF8.self).split(
      separator: separator, omittingEmptySubsequences: false)
    guard parts.count == 4, let index = Int(parts[2]), let count = Int(parts[3]),
      let author = try? UserID(String(parts[0])), let id = try? PostID(String(parts[1])),
      let slice = FanoutSlice(post: Post(author: author, id: id), index: index, count: count)
    else {
      throw InvalidEvent(.invalidTask, "the key of a task must be author, post, slice and count, joined by U+001F")
    }
    return slice
  }
}
