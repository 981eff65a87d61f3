internal import FanoutWorker
private import Glibc
internal import Kafka
internal import SocialEvents

extension Option {
  static let yes = Option.flag("yes", "don't ask")
}

extension Command {
  static let deadLettersDiscard = Command(
    name: "dead-letters discard", operands: "[ID…]",
    summary: "mark dead letters as not worth sending back",
    details: """
      Which ones: ids as `dead-letters list` prints them, or filters, or --all; of the latter two only those that are open. They
      are neither listed nor redriven any more, except by --settled and by their ids. It asks first; --yes does not, and is
      needed where there is no terminal.

      Kafka can't delete single records, so the letters stay in the topic as long as its retention says, and can still be
      redriven by their ids; the mark is progress of the consumer group fanout-redrive. To be rid of the records themselves,
      let retention or Kafka's kafka-delete-records do it.
      """,
    options: [.brokers, .kafka, .kafkaFile, .kafkaPasswordFile, .topicPrefix] + Option.letterFilters + [
      .allOpen, .yes, .noChange,
    ]
  ) { arguments in
    let topics = try arguments.topics()
    let selection = try arguments.letterSelection(topics)
    let isDryRun = try arguments.flag(.noChange)
    let isAsked = try !arguments.flag(.yes) && !isDryRun
    if isAsked, isatty(STDIN_FILENO) != 1 {
      throw UsageError("there is no terminal to ask on: add --yes, or --dry-run to see what would be discarded")
    }
    let letters = try DeadLetterTopic(try arguments.kafka(), topics: topics)
    defer { letters.close() }
    var reasons = ReasonHistogram()
    var missing: Set<LetterID> = if case .ids(let ids) = selection { ids } else { [] }
    try letters.read(try letters.ranges(of: selection)) { found, _ in
      for letter in found where letters.takes(letter, selection) {
        missing.remove(letter.id)
        letters.note(letter.id, .discarded)
        reasons.count(letter.reason)
      }
      return true
    }
    if let id = missing.min() { throw letters.missing(id) }
    let text = plural(reasons.total, "dead letter") + (reasons.total == 0 ? "" : " (\(reasons))")
    if isDryRun || reasons.total == 0 {
      Output().line((isDryRun ? "would discard " : "discarded ") + text)
      return .done
    }
    if isAsked {
      note("discard \(text)? [y/N]")
      guard let answer = readLine(), ["y", "yes"].contains(answer.lowercased()) else {
        throw CommandFailure("nothing was discarded")
      }
    }
    try letters.commit()
    letters.complainOfLosses()
    Output().line("discarded \(text)")
    return .done
  }
}
