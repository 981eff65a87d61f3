internal import FanoutWorker
internal import Kafka
internal import SocialEvents

extension Option {
  static let settled = Option.flag("settled", "also letters that were redriven or discarded")
  static let histogram = Option.flag("histogram", "only how many letters there are of each reason")
}

extension Command {
  static let deadLettersList = Command(
    name: "dead-letters list",
    summary: "print records that could not be applied, and why",
    details: """
      The newest first, each with its id (partition:offset in the topic of dead letters, such as 3:17, which `show`, `redrive`
      and `discard` take), when it became a dead letter, its state, its reason, the topic, partition and offset that it came
      from, and the reason in words. Letters that were redriven or discarded are only counted, unless --settled is given; of
      some Kafka has no room to keep which of the two: their state is `settled`.
      How many there are of each reason is told besides: on standard error where the output is no terminal.
      """,
    options: [.brokers, .kafka, .kafkaFile, .kafkaPasswordFile, .topicPrefix] + Option.letterFilters + [
      .settled, .histogram, .limit, .json,
    ]
  ) { arguments in
    try arguments.expectOperands(0...0)
    let topics = try arguments.topics()
    let filter = try arguments.letterFilter(topics)
    let showsSettled = try arguments.flag(.settled)
    var page = NewestLetters(limit: try arguments.number(.limit, in: 1...1_000_000))
    let letters = try DeadLetterTopic(try arguments.kafka(), topics: topics)
    defer { letters.close() }
    var states: [LetterState: Int] = [:]
    var reasons = ReasonHistogram()
    try letters.read(letters.extent) { found, _ in
      for letter in found where filter.takes(letter) {
        let state = letters.state(of: letter.id)
        states[state, default: 0] += 1
        if state != .open && !showsSettled { continue }
        reasons.count(letter.reason)
        page.add(ListedLetter(letter, state))
      }
      return true
    }
    let isJSON = try arguments.flag(.json)
    let isHistogram = try arguments.flag(.histogram)
    let listed = page.sorted
    let output = Output()
    switch (isHistogram, isJSON) {
    case (true, true):
      for (reason, count) in reasons.sorted {
        output.line(JSONLine().raw("reason", SafeText.json(reason)).member("letters", count).closed)
      }
    case (true, false) where !Output.isTerminal:
      for (reason, count) in reasons.sorted { output.line("\(SafeText.line(reason))\t\(count)") }
    case (false, true):
      for letter in listed { output.line(letter.json.closed) }
    case (false, false) where !Output.isTerminal:
      for letter in listed { output.line(letter.fields.joined(separator: "\t")) }
    default:
      output.line(summary(states, showsSettled))
      for line in reasons.bars { output.line("  " + line) }
      if !isHistogram, !listed.isEmpty {
        output.line()
        for line in ListPrinter.aligned([ListedLetter.titles] + listed.map(\.fields)) { output.line("  " + line) }
      }
    }
    output.flush()
    if !Output.isTerminal || isJSON {
      note(summary(states, showsSettled) + (reasons.total == 0 ? "" : ": \(reasons)"))
    }
    let more = reasons.total - listed.count
    if !isHistogram, more > 0 { note("\(plural(more, "older letter")) not printed: --limit \(reasons.total)") }
    return .done
  }

  private static func summary(_ states: [LetterState: Int], _ showsSettled: Bool) -> String {
    func count(_ state: LetterState) -> String { grouped(states[state] ?? 0) }
    let unknown = states[.settled] == nil ? "" : " and \(count(.settled)) either"
    return
      "\(plural(states[.open] ?? 0, "open dead letter")) (\(count(.redriven)) redriven and \(count(.discarded)) discarded"
      + unknown + (showsSettled ? " besides)" : " not shown)")
  }
}

/// A dead letter without its bytes, as the list has it.
private struct ListedLetter {
  let id: LetterID
  let milliseconds: Int64
  let fields: [String]
  let json: JSONLine

  static let titles = ["id", "since", "state", "reason", "topic", "partition", "offset", "message"]

  init(_ letter: StoredLetter, _ state: LetterState) {
    let origin = letter.origin
    id = letter.id
    milliseconds = letter.record.timestampMilliseconds ?? 0
    fields = [
      id.description, letterTime(letter.record.timestampMilliseconds), state.rawValue, SafeText.line(letter.reason),
      origin.topic.map { SafeText.line($0) } ?? "-", origin.partition.map(String.init) ?? "-",
      origin.offset.map(String.init) ?? "-", SafeText.line(origin.message ?? "-"),
    ]
    json = LetterJSON.common(letter, state)
  }
}

/// The newest letters of however many, in memory for twice as many as are wanted.
private struct NewestLetters {
  let limit: Int
  private var letters: [ListedLetter] = []

  init(limit: Int) { self.limit = limit }

  mutating func add(_ letter: ListedLetter) {
    letters.append(letter)
    if letters.count >= 2 * limit + 100 { letters = sorted }
  }

  var sorted: [ListedLetter] {
    let sorted = letters.sorted { ($0.milliseconds, $0.id.offset, $0.id) > ($1.milliseconds, $1.id.offset, $1.id) }
    return Array(sorted.prefix(limit))
  }
}
