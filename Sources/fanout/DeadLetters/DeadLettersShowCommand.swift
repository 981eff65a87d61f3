internal import FanoutWorker
internal import Kafka
internal import SocialEvents

extension Option {
  static let full = Option.flag("full", "all of a long key, value or header, not only its first 4 KiB")
}

extension Command {
  static let deadLettersShow = Command(
    name: "dead-letters show", operands: "ID…",
    summary: "print dead letters whole: reason, origin, headers, key, value, and the event",
    details: """
      An ID is a partition and an offset of the topic of dead letters, such as 3:17, as `dead-letters list` prints them.
      Keys, values and headers are printed as text if they are UTF-8, else as a hex dump; what a terminal could obey, or what
      is invisible, as escapes: \\n, \\u{1B}; a backslash as \\\\. If the value decodes as an event now, the event follows, else
      why it does not, which may differ from the reason that it became a dead letter for.
      """,
    options: [.brokers, .kafka, .kafkaFile, .kafkaPasswordFile, .topicPrefix, .full, .json]
  ) { arguments in
    try arguments.expectOperands(1...1000)
    let ids = try arguments.letterIDs()
    let isJSON = try arguments.flag(.json)
    let limit = try arguments.flag(.full) ? Int.max : 4096
    let topics = try arguments.topics()
    let letters = try DeadLetterTopic(try arguments.kafka(), topics: topics)
    defer { letters.close() }
    var missing = ids
    let output = Output()
    try letters.read(try letters.ranges(of: .ids(ids))) { found, _ in
      for letter in found where ids.contains(letter.id) {
        missing.remove(letter.id)
        let state = letters.state(of: letter.id)
        if isJSON {
          output.line(LetterJSON.whole(letter, state, topics).closed)
        } else {
          for line in LetterText(letter, state, topics, limit: limit).lines { output.line(line) }
        }
      }
      return true
    }
    output.flush()
    if let id = missing.min() { throw letters.missing(id) }
    return .done
  }
}

/// A dead letter for people.
private struct LetterText {
  private(set) var lines: [String] = []
  private let limit: Int

  init(_ letter: StoredLetter, _ state: LetterState, _ topics: Topics, limit: Int) {
    self.limit = limit
    let origin = letter.origin
    let since = letterTime(letter.record.timestampMilliseconds)
    lines.append("dead letter \(letter.id), \(state.rawValue), since \(since)")
    add("reason", letter.reason)
    add("message", origin.message)
    add(
      "from",
      origin.topic.map { topic in
        topic + (origin.partition.map { "[\($0)]" } ?? "") + (origin.offset.map { " at offset \($0)" } ?? "")
      })
    add("timestamp", origin.timestampMilliseconds.map(letterTime))
    add("attempt", origin.attempt.map(String.init))
    add("group", origin.group)
    if letter.redriveCount > 0 { add("redriven", "\(letter.redriveCount) times") }
    lines.append("headers: \(letter.record.headers.count)")
    for header in letter.record.headers { add(header: header) }
    add(bytes: letter.record.key, "key")
    if origin.isStub, let size = origin.size {
      lines.append(
        "value: \(size) bytes, too large for the dead letters; SHA-256 \(SafeText.line(origin.sha256 ?? "unknown"))")
    } else {
      add(bytes: letter.record.value, "value")
    }
    switch LetterContent(letter, topics) {
    case .event(let event): lines += ["event, as it decodes now:", "  " + event]
    case .invalid(let error): lines.append("no event: \(SafeText.line(error.description))")
    case .none: break
    }
    lines.append("")
  }

  private mutating func add(_ name: String, _ text: String?) {
    if let text { lines.append("\(Help.pad(name, 9)) \(SafeText.line(text))") }
  }

  private mutating func add(header: Header) {
    let name = "  \(SafeText.line(header.name)): "
    guard let value = header.value else {
      lines.append(name + "null")
      return
    }
    if value.count <= limit, let text = SafeText.line(utf8: value) {
      lines.append(name + text)
    } else {
      lines.append(name + "\(value.count) bytes")
      addDump(value)
    }
  }

  private mutating func add(bytes: [UInt8]?, _ name: String) {
    guard let bytes else {
      lines.append("\(name): null")
      return
    }
    lines.append("\(name): \(bytes.count) bytes")
    if bytes.isEmpty { return }
    if let text = SafeText.string(bytes) {
      // By scalars: one "character" may be as long as the value.
      lines.append("  " + SafeText.line(String(String.UnicodeScalarView(text.unicodeScalars.prefix(limit)))))
      if bytes.count > limit { lines.append("  … (--full prints all)") }
    } else {
      addDump(bytes)
    }
  }

  private mutating func addDump(_ bytes: [UInt8]) {
    lines += SafeText.hexDump(Array(bytes.prefix(limit))).map { "  " + $0 }
    if bytes.count > limit { lines.append("  … (--full prints all)") }
  }
}
