internal import FanoutProducer
private import Glibc
internal import Kafka
internal import SocialEvents

extension Command {
  static let emit = Command(
    name: "emit", operands: "[FILE]",
    summary: "send events from a file, or from standard input, to Kafka",
    details: """
      Each line is one structured CloudEvent, such as
        {"specversion":"1.0","id":"1","source":"/app","type":"follow","time":"2026-07-25T10:00:00Z","data":{"actor":"ann","target":"bob"}}
      A line that is not a valid event is named on standard error with its number and the reason, and nothing of it is
      sent; the others are. Ends when all are acknowledged.
      """,
    options: [.brokers, .kafka, .kafkaFile, .kafkaPasswordFile, .topicPrefix]
  ) { arguments in
    try arguments.expectOperands(0...1)
    Signals.ignoreBrokenPipes()
    let lines = try LineReader(path: arguments.operands.first)
    let producer = try EventProducer(try arguments.kafka(), topics: try arguments.topics(), mode: .bulk)
    defer { producer.close(timeoutMilliseconds: 1000) }
    try producer.warm()
    var queued = 0
    var refused = 0
    try lines.forEachLine { number, line in
      do {
        guard let line else {
          throw InvalidEvent(.tooLarge, "the line is longer than \(EventDecoder.maximumLength) bytes")
        }
        if line.isBlank { return }
        let (event, data) = try EventDecoder.decodeStructured(line)
        do throws(EventProducer.Failure) {
          try producer.send(event, data: line.extracting(data))
          queued += 1
        } catch {
          try? producer.flush(timeoutMilliseconds: 30_000)
          throw CommandFailure("line \(number): \(error). Sent before it: \(producer.counts.delivered) events.")
        }
      } catch let error as InvalidEvent {
        refused += 1
        complain("line \(number): \(error). Not sent.")
      }
    }
    var problem: KafkaError?
    do throws(KafkaError) { try producer.flush(timeoutMilliseconds: 300_000) } catch { problem = error }
    let sent = producer.counts.delivered
    Output().line("sent \(sent) events\(refused > 0 ? ", refused \(refused) lines" : "")")
    if let problem {
      throw CommandFailure(
        "\(queued - sent) events were not acknowledged: \(problem). Emitting all again does no harm.")
    }
    return refused == 0 ? .done : .failed
  }
}

extension Span<UInt8> {
  /// Only spaces, tabs and carriage returns.
  fileprivate var isBlank: Bool {
    for index in indices where self[index] != 0x20 && self[index] != 0x09 && self[index] != 0x0D { return false }
    return true
  }
}

/// Reads a file or standard input line by line, in bounded memory.
struct LineReader: ~Copyable {
  private let descriptor: Int32
  private let name: String

  /// Beyond this many bytes a line is skipped, and reported as nil.
  private static let maximumLine = 1 << 20

  /// - Parameter path: nil or "-" for standard input.
  init(path: String?) throws {
    guard let path, path != "-" else {
      descriptor = STDIN_FILENO
      name = "standard input"
      return
    }
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    name = path
    if descriptor < 0 { throw CommandFailure("can't open \(path): \(unsafe String(cString: strerror(errno)))") }
  }

  deinit {
    if descriptor != STDIN_FILENO { close(descriptor) }
  }

  /// Calls `body` with the number, from 1, and the bytes of each line.
  func forEachLine(_ body: (Int, Span<UInt8>?) throws -> Void) throws {
    var buffer: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 18)
    var number = 0
    var isSkipping = false
    while true {
      let count = try fill(&chunk)
      if count == 0 { break }
      var start = 0
      while let end = chunk[start..<count].firstIndex(of: 0x0A) {
        number += 1
        if isSkipping {
          isSkipping = false
          try body(number, nil)
        } else if buffer.isEmpty {
          try body(number, chunk.span.extracting(start..<end))
        } else {
          buffer.append(contentsOf: chunk[start..<end])
          try body(number, buffer.span)
        }
        buffer.removeAll(keepingCapacity: true)
        start = end + 1
      }
      if isSkipping { continue }
      buffer.append(contentsOf: chunk[start..<count])
      if buffer.count > Self.maximumLine {
        isSkipping = true
        buffer.removeAll()
      }
    }
    if isSkipping { try body(number + 1, nil) }
    if !buffer.isEmpty { try body(number + 1, buffer.span) }
  }

  private func fill(_ chunk: inout [UInt8]) throws -> Int {
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 { return count }
      if errno != EINTR { throw CommandFailure("can't read \(name): \(unsafe String(cString: strerror(errno)))") }
    }
  }
}
