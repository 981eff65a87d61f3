package import FanoutWorker
internal import Kafka
package import SocialEvents

extension Option {
  static let reason = Option(
    name: "reason", placeholder: "A,B,…", help: "only letters with one of these reasons, such as not-json,refused")
  static let originalTopic = Option(
    name: "topic", placeholder: "A,B,…", help: "only letters from these topics; the prefix may be left out: likes,posts"
  )
  static let deadFrom = Option(
    name: "from-time", placeholder: "TIME",
    help: "only letters that became such at this time, such as 2026-07-25T10:00:00Z, or later")
  static let deadBefore = Option(
    name: "to-time", placeholder: "TIME", help: "only letters that became such before this time")
  static let allOpen = Option.flag("all", "all letters that are open")
  static let noChange = Option.flag("dry-run", "tell what would be done, and do nothing")

  static let letterFilters = [Option.reason, .originalTopic, .deadFrom, .deadBefore]
}

extension Arguments {
  func letterFilter(_ topics: Topics) throws -> LetterFilter {
    var filter = LetterFilter()
    filter.reasons = Set(try words(.reason))
    for name in try words(.originalTopic) {
      let known = topics.events + [topics.tasks]
      guard let topic = known.first(where: { $0 == name || $0 == topics.prefix + name }) else {
        throw UsageError("--topic: \(name) is no topic of events or tasks; choose from \(known.joined(separator: ","))")
      }
      filter.topics.insert(topic)
    }
    filter.from = try time(.deadFrom)
    filter.before = try time(.deadBefore)
    if let from = filter.from, let before = filter.before, from >= before {
      throw UsageError("--to-time must be later than --from-time")
    }
    return filter
  }

  /// The ids that are given as operands.
  func letterIDs() throws -> Set<LetterID> {
    Set(
      try operands.map { word in
        guard let id = LetterID(word) else {
          throw UsageError("\"\(word)\" names no dead letter. An id is a partition and an offset, such as 3:17")
        }
        return id
      })
  }

  /// Ids, or filters, or `--all`: exactly one of them, so that nothing is done to letters that were not meant.
  package func letterSelection(_ topics: Topics) throws -> LetterSelection {
    let ids = try letterIDs()
    let filter = try letterFilter(topics)
    let takesAll = try flag(.allOpen)
    switch (ids.isEmpty, filter.isEmpty, takesAll) {
    case (false, true, false): return .ids(ids)
    case (true, false, false), (true, true, true): return .open(filter)
    case (true, true, false):
      throw UsageError("which letters? Give their ids, or --reason, --topic, --from-time, --to-time, or --all")
    default: throw UsageError("give ids, or filters, or --all, not several of them")
    }
  }

  private func words(_ option: Option) throws -> [String] {
    guard let text = optional(option) else { return [] }
    let words = text.split(separator: ",").map(String.init)
    if words.isEmpty { throw UsageError("--\(option.name) names nothing") }
    return words
  }

  private func time(_ option: Option) throws -> Int64? {
    guard let text = optional(option) else { return nil }
    do throws(InvalidEvent) {
      // Records have milliseconds: the first one that is not before the time.
      return (try Timestamp(rfc3339: text).microseconds + 999) / 1000
    } catch {
      throw UsageError(
        "--\(option.name) must be a time such as 2026-07-25T10:00:00Z, not \"\(text)\": \(error.detail)")
    }
  }
}

extension DeadLetterTopic {
  /// Says what Kafka has no room to keep.
  func complainOfLosses() {
    for (partition, losses) in losses.sorted(by: { $0.key.partition < $1.key.partition }) {
      let place = "partition \(partition.partition)"
      if losses.open > 0 {
        complain(
          "\(place): \(plural(Int(losses.open), "letter")) listed as open from now on, though dealt with: too many open ones lie "
            + "between them for Kafka to keep note. Redrive or discard the oldest first.")
      }
      if losses.settled > 0 {
        complain(
          "\(place): \(plural(Int(losses.settled), "letter")) listed as settled from now on: redriven and discarded ones take turns "
            + "too often for Kafka to keep note which each is.")
      }
    }
  }
}

/// What the commands print of times, which are data from the network: no year has five digits in RFC 3339.
func letterTime(_ milliseconds: Int64?) -> String {
  guard let milliseconds else { return "-" }
  let latest: Int64 = 253_402_300_799_999
  return 0...latest ~= milliseconds ? Timestamp(milliseconds: milliseconds).description : "\(milliseconds) ms"
}

func plural(_ count: Int, _ word: String) -> String { "\(grouped(count)) \(word)\(count == 1 ? "" : "s")" }
