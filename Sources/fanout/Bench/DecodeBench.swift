private import FoundationEssentials
internal import SocialEvents

/// Decoding structured events, beside Foundation's JSONDecoder into a plain Codable struct.
enum DecodeBench {
  private struct Plain: Decodable {
    struct Payload: Decodable {
      var actor: String?
      var target: String?
      var author: String?
      var post: String?
      var silent: Bool?
    }
    var specversion: String
    var id: String
    var source: String
    var type: String
    var time: String
    var data: Payload
  }

  static func run(_ context: BenchContext) throws {
    var data = BenchData(users: 10_000)
    var lines: [[UInt8]] = []
    let encoder = EventEncoder()
    for event in data.edgeEvents(50_000) {
      var line: [UInt8] = []
      try encoder.appendStructured(event, to: &line)
      lines.append(line)
    }
    let foundation = lines.map { Data($0) }
    let decoder = JSONDecoder()
    var ours: [Double] = []
    var theirs: [Double] = []
    var count = 0
    for _ in 0..<context.rounds {
      ours.append(
        try BenchContext.time {
          for line in lines { count += try EventDecoder.decodeStructured(line.span).event.id.string.utf8.count }
        })
      theirs.append(
        try BenchContext.time {
          for line in foundation { count += try decoder.decode(Plain.self, from: line).id.utf8.count }
        })
    }
    let a = BenchContext.median(ours)
    let b = BenchContext.median(theirs)
    let size = lines.reduce(0) { $0 + $1.count } / lines.count
    context.report(
      "decode",
      "\(grouped(Double(lines.count) / a)) events/s of \(size) bytes, validated; JSONDecoder "
        + "\(grouped(Double(lines.count) / b)) events/s: \(fixed(b / a, 1)) times as fast")
    if count == 0 { throw CommandFailure("nothing was decoded") }
  }
}
