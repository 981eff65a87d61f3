import Foundation
import Kafka
import SocialEvents
import Testing

@Suite("emit (SPEC 8)", .crowded)
struct EmitTests {
  @Test("names the lines it refuses and why, sends the others, and exits 1")
  func badLines() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let lines = [
      Lines.follow("ann", "bob", id: "1"),
      "not json",
      Lines.follow("ann", "ann", id: "2"),
      "",
      Lines.event("poke", "{}", id: "3", time: "10:00"),
      Lines.event("follow", #"{"actor":"ann"}"#, id: "4", time: "10:00"),
      Lines.follow("carl", "bob", id: "5"),
      Lines.follow("dora", "bob", id: "6", time: "1969-12-31T23:59:59Z"),
    ]
    let path = try deployment.folder.write("events.ndjson", lines.joinedLines)
    let result = try await deployment.run(["emit", path], expecting: 1)
    #expect(result.output == "sent 2 events, refused 5 lines\n")
    let complaints = result.error.split(separator: "\n")
    for (line, reason) in [
      (2, "not-json"), (3, "self-follow"), (5, "unknown-type"), (6, "missing-member"), (8, "time-before-1970"),
    ] {
      #expect(complaints.contains { $0.contains("line \(line): \(reason)") }, "\(result.error)")
    }
    #expect(complaints.count == 5)
    let sent = try deployment.records(of: deployment.topics.events)
    #expect(Set(sent.compactMap { $0.header("ce_id") }) == ["1", "5"], "nothing of a refused line is sent")
    #expect(sent.count == 2)
  }

  @Test("blank lines, CRLF, and a last line without an end are all right")
  func lineEnds() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let text =
      "\n \t\r\n" + Lines.follow("ann", "bob", id: "1") + "\r\n\n" + Lines.follow("carl", "bob", id: "2") + "\n\r\n"
      + Lines.follow("dora", "bob", id: "3")
    let result = try await deployment.run(["emit", try deployment.folder.write("events.ndjson", text)])
    #expect(result.output == "sent 3 events\n")
    #expect(result.error == "")
    try await deployment.catchUp()
    let followers = try await deployment.run(["show", "followers", "bob"]).lines
    #expect(Set(followers) == ["ann", "carl", "dora"])
  }

  @Test("reads standard input", arguments: [[], ["-"]])
  func standardInput(operands: [String]) async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let path = try deployment.folder.write("events.ndjson", Lines.follow("ann", "bob", id: "1") + "\n")
    let result = try await deployment.run(["emit"] + operands, input: path)
    #expect(result.output == "sent 1 events\n" || result.output == "sent 1 event\n")
  }

  @Test("a huge line is refused by its number, in bounded memory, and the next ones are sent")
  func hugeLine() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    var bytes = Array((Lines.follow("ann", "bob", id: "1") + "\n").utf8)
    // Longer than an event may be; longer than a line may be; and exactly as long as an event may be.
    bytes += Array(repeating: UInt8(ascii: "x"), count: 70_000) + [0x0A]
    bytes += Array(repeating: UInt8(ascii: "{"), count: 30_000_000) + [0x0A]
    let padded = Lines.follow("carl", "bob", id: "2")
    bytes += Array(padded.utf8) + Array(repeating: UInt8(ascii: " "), count: 65_536 - padded.utf8.count) + [0x0A]
    bytes += Array(repeating: UInt8(ascii: "y"), count: 2_000_000)
    let path = try deployment.folder.write("events.ndjson", bytes)
    let result = try await deployment.run(["emit", path], expecting: 1)
    #expect(result.output == "sent 2 events, refused 3 lines\n")
    for line in [2, 3, 5] { #expect(result.error.contains("line \(line): too-large"), "\(result.error)") }
  }

  @Test("a file that is missing, or a folder, is named")
  func missingFile() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    for path in ["/nonexistent/events.ndjson", deployment.folder.path] {
      let result = try await deployment.run(["emit", path], expecting: 1)
      #expect(result.error.contains(path), "\(result.error)")
    }
  }

  @Test("brokers that can't be reached are an error that names them, not a hang")
  func unreachable() async throws {
    let folder = try TestFolder()
    let path = try folder.write("events.ndjson", Lines.follow("ann", "bob", id: "1") + "\n")
    let result = try await Fanout.run(["emit", path, "--brokers", "127.0.0.1:9"], in: folder, expecting: 1)
    #expect(result.error.contains("can't reach Kafka at 127.0.0.1:9"), "\(result.error)")
    #expect(result.output == "")
  }

  @Test("keys records by what they assert, and keeps members that it doesn't know (SPEC 2, 3)")
  func records() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let data = #"{"actor":"ann","author":"bob","post":"p/1","later":[1,2.50, {}]}"#
    try await deployment.emit(lines: Lines.event("like", data, id: "1", time: "2024-05-01T12:00:00+02:00") + "\n")
    let records = try deployment.records(of: deployment.topics.events)
    #expect(records.count == 1)
    let record = try #require(records.first)
    #expect(record.partition.topic == deployment.topics.name(of: .likes))
    #expect(record.key == Array("ann\u{1F}bob\u{1F}p/1".utf8))
    #expect(record.value == Array(data.utf8))
    #expect(record.header("ce_type") == "like")
    #expect(record.header("content-type") == "application/json")
  }
}
