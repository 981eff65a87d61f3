import Kafka
import SocialEvents
import Testing

@Suite("Memory is bounded whatever the backlog (SPEC 7)", .crowded)
struct MemoryTests {
  private static let limitInMegabytes = 128

  @Test("by large records that can't be applied", .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func largeInvalidRecords() async throws {
    let deployment = try await Deployment.start(on: .kafka)
    // 150 MB in all, in the three places that a record has for bytes. Not to be compressed, as librdkafka expands what is.
    var random = SystemRandomNumberGenerator()
    let noise = (0..<200_000).map { _ in UInt8.random(in: 0...255, using: &random) }
    let topic = deployment.topics.name(of: .likes)
    let object = Array("{}".utf8)
    for _ in 0..<50 {
      var records: [ProducerRecord] = []
      for number in 0..<5 {
        let key = [UInt8(number)]
        records.append(ProducerRecord(topic: topic, key: key, value: noise))
        records.append(ProducerRecord(topic: topic, key: noise, value: object))
        records.append(
          ProducerRecord(topic: topic, key: key, value: object, headers: [Header(name: "n", value: noise)]))
      }
      try deployment.send(records)
    }
    let report = try await deployment.catchUp()
    #expect(report.deadLetters == 750)
    #expect(report["peak_memory_mb"] > 0)
    #expect(report["peak_memory_mb"] < Self.limitInMegabytes)
  }

  @Test("by valid events that carry as much as they may", .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func largeExtras() async throws {
    let deployment = try await Deployment.start(on: .kafka)
    let filler = String(repeating: "abcdefgh", count: 500)
    let lines = (0..<20_000).map { number in
      Lines.event(
        "like", #"{"actor":"a\#(number)","author":"b","post":"p","extra":{"x":"\#(filler)"}}"#, id: "\(number)",
        time: "10:00")
    }
    try await deployment.emit(try deployment.folder.write("events.ndjson", lines.joinedLines))
    let report = try await deployment.catchUp()
    #expect(report.events == 20_000)
    #expect(report["peak_memory_mb"] < Self.limitInMegabytes)
  }

  @Test("by dead letters with large headers", .enabled(if: RealKafka.isPresent, RealKafka.missing))
  func largeHeadersOfDeadLetters() async throws {
    let deployment = try await Deployment.start(on: .kafka)
    // 216 MB in all. They are easily compressed, so that they come faster than they can be looked at.
    let large = Header(name: "n", value: Array(repeating: 7, count: 900_000))
    for round in 0..<24 {
      try deployment.send(
        (0..<10).map { number in
          deployment.deadLetter(
            "refused", from: deployment.topics.name(of: .likes), value: [UInt8(round)], headers: [large],
            partition: Int32(number % 4))
        })
    }
    for arguments in [["list", "--histogram"], ["redrive", "--all"]] {
      let command = try deployment.start(["dead-letters"] + arguments)
      var peak = 0
      try await eventually("it ends", else: command.report) {
        peak = max(peak, command.peakMemory)
        return !command.isRunning
      }
      #expect(command.status == 0, "\(command.report)")
      #expect(command.standardOutput.contains("240"), "\(command.report)")
      #expect(peak > 0 && peak < Self.limitInMegabytes, "\(arguments): \(peak) MB")
    }
  }
}
