internal import FanoutWorker
internal import Kafka
internal import SocialEvents

extension Option {
  static let partitions = Option(
    name: "partitions", placeholder: "N", help: "partitions of each topic; more workers than this can't share the work",
    standard: "12")
  static let replicationFactor = Option(
    name: "replication-factor", placeholder: "N", help: "copies of each partition; -1: what the brokers are set to",
    standard: "-1")
  static let compact = Option.flag(
    "compact",
    "keep only the last record of every key; safe only if the producers of one key publish in the order of their versions"
  )
}

extension Command {
  static let topicsCreate = Command(
    name: "topics create",
    summary: "make the topics that are missing",
    details: """
      Topics keep their whole log (cleanup.policy=delete, no limit of time or size), so that any store can be rebuilt by
      replaying them. Topics that exist already are left as they are.
      """,
    options: [
      .brokers, .kafka, .kafkaFile, .kafkaPasswordFile, .topicPrefix, .partitions, .replicationFactor, .compact, .json,
    ]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let topics = try arguments.topics()
    let kafka = try arguments.kafka()
    let partitions = try arguments.number(.partitions, in: 1...10_000)
    let replication = try arguments.number(.replicationFactor, in: -1...100)
    let isCompact = try arguments.flag(.compact)
    // What exists is found out first: brokers without topic administration need nothing more then.
    let present = try TopicLayout.existing(topics, kafka)
    let missing = topics.all.filter { present[$0] == nil }
    let specs = missing.map { name in
      Admin.TopicSpec(
        name: name, partitions: partitions, replicationFactor: replication,
        configuration: TopicLayout.settings(of: name, topics, isCompact: isCompact))
    }
    let outcomes = try Admin.createTopics(specs, with: kafka)
    try TopicLayout.waitForLeaders(of: specs.map(\.name), kafka)
    let output = Output()
    var failures = 0
    for name in topics.all {
      let result: String
      if let count = present[name] {
        result = "existed with \(count) partitions"
      } else {
        switch outcomes[name] {
        case .created?: result = "created with \(partitions) partitions"
        case .existed?: result = "existed"
        case .failed(let error)?:
          failures += 1
          result = "failed: \(error)"
        case nil:
          failures += 1
          result = "failed: the brokers did not say why"
        }
      }
      if try arguments.flag(.json) {
        output.line(JSONLine().member("topic", name).member("result", result).closed)
      } else {
        output.line("\(Help.pad(name, 24)) \(result)")
      }
    }
    return failures == 0 ? .done : .failed
  }

  static let topicsCheck = Command(
    name: "topics check",
    summary: "say whether the topics are as they should be",
    details: """
      Exit 3 if a topic is missing, would lose records, or is too small for dead letters; 1 if the brokers don't tell (the
      embedded broker has no settings to tell). Compaction is named but no finding: see `topics create`.
      """,
    options: [.brokers, .kafka, .kafkaFile, .kafkaPasswordFile, .topicPrefix, .json]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let topics = try arguments.topics()
    let kafka = try arguments.kafka()
    let present = try TopicLayout.existing(topics, kafka)
    var settings: [String: [String: String]] = [:]
    var failure: KafkaError?
    do throws(KafkaError) {
      settings = try Admin.describeConfigs(
        topics: topics.all.filter { present[$0] != nil }, with: kafka, timeoutMilliseconds: 5000)
    } catch {
      failure = error
    }
    let output = Output()
    var hasFindings = false
    for name in topics.all {
      let findings =
        present[name] == nil
        ? ["is missing. Run: fanout topics create"]
        : settings[name].map { TopicLayout.findings(name, topics, $0) } ?? []
      hasFindings = hasFindings || !findings.isEmpty
      let isCompacted = settings[name]?["cleanup.policy"]?.contains("compact") ?? false
      if try arguments.flag(.json) {
        var list: [UInt8] = []
        for finding in findings {
          if !list.isEmpty { list.append(UInt8(ascii: ",")) }
          appendJSONString(finding, to: &list)
        }
        output.line(
          JSONLine().member("topic", name).member("partitions", present[name] ?? 0)
            .member("settingsKnown", settings[name] != nil).member("compacted", isCompacted)
            .raw("findings", "[\(String(decoding: list, as: UTF8.self))]").closed)
        continue
      }
      for finding in findings { output.line("\(Help.pad(name, 24)) \(finding)") }
      if findings.isEmpty {
        let state = settings[name] == nil ? "settings unknown" : isCompacted ? "ok, compacted" : "ok"
        output.line("\(Help.pad(name, 24)) \(state), \(present[name] ?? 0) partitions")
      }
    }
    output.flush()
    if let failure, !hasFindings { throw CommandFailure("the brokers did not tell the topics' settings: \(failure)") }
    return hasFindings ? .foundDifferences : .done
  }
}

/// How the topics of SPEC 3 are set up.
enum TopicLayout {
  /// Room for a record of the default greatest size and the headers that a dead letter adds.
  private static let deadLetterBytes = 2_097_152

  /// The topics there are, with their partitions.
  static func existing(_ topics: Topics, _ kafka: ClientConfiguration) throws -> [String: Int] {
    var found: [String: Int] = [:]
    // All topics are asked for at once, as a broker may create one that is asked for by name.
    for topic in try Admin.metadata(with: kafka).topics where topics.all.contains(topic.name) && topic.error == nil {
      found[topic.name] = topic.partitionCount
    }
    return found
  }

  /// Returns once the brokers answer for topics that were just made, so that the next command finds them.
  static func waitForLeaders(of names: [String], _ kafka: ClientConfiguration) throws {
    if names.isEmpty { return }
    let deadline = Instant.after(milliseconds: 15_000)
    while Instant.now < deadline {
      let ready = try Admin.metadata(with: kafka).topics.filter { $0.error == nil && $0.partitionCount > 0 }.map(\.name)
      if Set(names).isSubset(of: ready) { return }
      pause(milliseconds: 50)
    }
  }

  static func settings(of name: String, _ topics: Topics, isCompact: Bool) -> [String: String] {
    var settings = ["cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"]
    if name == topics.deadLetters {
      settings["max.message.bytes"] = String(deadLetterBytes)
    } else if isCompact {
      settings["cleanup.policy"] = "compact"
    }
    return settings
  }

  /// What is wrong with a topic's settings.
  static func findings(_ name: String, _ topics: Topics, _ settings: [String: String]) -> [String] {
    var findings: [String] = []
    let policy = settings["cleanup.policy"] ?? "delete"
    if policy.contains("delete") {
      for limit in ["retention.ms", "retention.bytes"] {
        if let value = settings[limit], value != "-1" {
          findings.append("\(limit)=\(value) drops old records, which can't be replayed then; set it to -1")
        }
      }
    }
    if name == topics.deadLetters {
      if policy.contains("compact") {
        findings.append("cleanup.policy=\(policy) drops dead letters whose key comes again; set it to delete")
      }
      if let size = settings["max.message.bytes"].flatMap(Int.init), size < deadLetterBytes {
        findings.append("max.message.bytes=\(size) is too small for some dead letters; set it to \(deadLetterBytes)")
      }
    }
    return findings
  }
}
