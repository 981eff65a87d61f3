internal import FanoutWorker
internal import Kafka
internal import SocialEvents

extension Option {
  static let rate = Option(
    name: "rate", placeholder: "N", help: "the most letters to send back in a second (as fast as it goes, if not given)"
  )
  static let maxRedrives = Option(
    name: "max-redrives", placeholder: "N", help: "leave a letter whose record was sent back this often already",
    standard: "3")
}

extension Command {
  static let deadLettersRedrive = Command(
    name: "dead-letters redrive", operands: "[ID…]",
    summary: "send dead letters back to the topics that they came from",
    details: """
      Which ones: ids as `dead-letters list` prints them, or filters, or --all. Filters and --all take letters that are open:
      neither redriven nor discarded. Key, value, headers and timestamp are the original record's, less the headers that the
      dead letter added, and with the header fanout.redrive.count, by which --max-redrives ends a circle.

      It reads what is there when it begins, and ends. What is sent back is noted as progress of the consumer group
      fanout-redrive (which letters, not only up to where, so that filters pass over nothing), once Kafka has acknowledged it.
      Killed at any moment and begun again, it goes on; a few letters may then be sent twice, which changes nothing.

      A letter stays, is named on standard error, and makes the command exit 1, if it was redriven too often, if it is a stub
      (its value was too large for the dead letters), if it does not come from a topic of events or tasks, if that topic is
      gone (then it is counted, not named), or if Kafka refuses it. Where topics have message.timestamp.type=LogAppendTime, brokers put their own time in place of the original one.
      """,
    options: [.brokers, .kafka, .kafkaFile, .kafkaPasswordFile, .topicPrefix] + Option.letterFilters + [
      .allOpen, .maxRedrives, .rate, .noChange,
    ]
  ) { arguments in
    let topics = try arguments.topics()
    var options = Redrive.Options(try arguments.letterSelection(topics))
    options.maxRedrives = try arguments.number(.maxRedrives, in: 1...1_000_001)
    options.rate = try arguments.optionalNumber(.rate, in: 1...1_000_000)
    options.isDryRun = try arguments.flag(.noChange)
    let isDryRun = options.isDryRun
    let kafka = try arguments.kafka()
    let redrive = Redrive(kafka, options)
    Signals.ignoreBrokenPipes()
    Signals.onTermination { redrive.stop() }
    let letters = try DeadLetterTopic(kafka, topics: topics)
    defer { letters.close() }
    var named = 0
    let last = try redrive.run(
      letters,
      onLeft: { left in
        named += 1
        if named <= 100 { note("left \(left.id): \(SafeText.line(left.reason))") }
        if named == 101 { note("… and others") }
      },
      report: { progress in
        let share = progress.total > 0 ? Double(progress.done) / Double(progress.total) * 100 : 100
        let remaining =
          progress.done < progress.total ? progress.remainingSeconds.map { ", \(fixed($0, 0)) s left" } : nil
        note(
          "passed \(grouped(Int(progress.done))) of \(grouped(Int(progress.total))) offsets (\(fixed(share, 0)) %), "
            + "\(grouped(progress.redrivenCount)) \(isDryRun ? "to redrive" : "redriven")\(remaining ?? "")")
      })
    for (topic, count) in last.missingTopics.sorted(by: { $0.key < $1.key }) {
      note(
        "left \(plural(count, "letter")) from \(topic): there is no such topic. `fanout topics create` makes it again")
    }
    letters.complainOfLosses()
    let places = last.redriven.sorted { $0.key < $1.key }.map { "\(grouped($0.value)) to \($0.key)" }
    Output().line(
      "\(isDryRun ? "would redrive" : "redrove") \(plural(last.redrivenCount, "dead letter"))"
        + (places.isEmpty ? "" : ": \(places.joined(separator: ", "))")
        + (last.left > 0 ? "; \(grouped(last.left)) \(isDryRun ? "would be left" : "left")" : ""))
    guard last.done >= last.total else {
      throw CommandFailure("stopped before the end; begin again to redrive the rest")
    }
    return last.left == 0 || isDryRun ? .done : .failed
  }
}
