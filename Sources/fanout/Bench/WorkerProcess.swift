internal import Kafka
internal import SocialEvents

/// A `fanout worker` in a process of its own, and what its log tells.
final class WorkerProcess {
  struct Outcome {
    let log: String
    let cpuSeconds: Double

    /// A number of the worker's last line, such as `deliveries=12`.
    func count(_ name: String) throws -> Int {
      let parts = (log.split(separator: "worker stopped:").last ?? "").split(separator: " \(name)=")
      guard parts.count == 2, let count = Int(parts[1].prefix(while: \.isNumber)) else {
        throw CommandFailure("the worker did not tell its \(name): \(log.suffix(2000))")
      }
      return count
    }

    /// The time between the first line that has one text and the last that has another. Lines begin with their time.
    func seconds(from first: String, to last: String) throws -> Double {
      let lines = log.split(separator: "\n")
      guard let start = lines.first(where: { $0.contains(first) }), let end = lines.last(where: { $0.contains(last) })
      else { throw CommandFailure("the worker's log lacks \"\(first)\" or \"\(last)\": \(log.suffix(2000))") }
      return Double(try Self.time(of: end) - Self.time(of: start)) / 1e6
    }

    private static func time(of line: Substring) throws -> Int64 {
      try Timestamp(rfc3339: String(line.prefix { $0 != " " })).microseconds
    }
  }

  private let process: ChildProcess

  init(
    _ context: BenchContext, _ kafka: ClientConfiguration, _ topics: Topics, store: String, _ options: [String]
  ) throws {
    // Some may be secret.
    let properties = context.newPath("properties")
    try context.write(kafka.properties.map { "\($0.name)=\($0.value)\n" }.joined(), to: properties)
    process = try ChildProcess(
      [
        "/proc/self/exe", "worker", "--brokers", kafka.brokers, "--topic-prefix", topics.prefix, "--kafka-file",
        properties,
      ] + options,
      environment: ["FANOUT_STORE=\(store)", "FANOUT_KAFKA=", "FANOUT_KAFKA_PASSWORD_FILE="],
      output: context.newPath("log"))
  }

  func stop() { process.stop() }

  /// How many partitions it was assigned last; nil while it is not in the group.
  func assignedPartitions() throws -> Int? {
    let parts = try process.output().split(separator: " assigned ")
    return parts.count < 2 ? nil : parts.last.flatMap { Int($0.prefix(while: \.isNumber)) }
  }

  /// Waits for its end.
  /// - Throws: `CommandFailure` if it did not end well.
  func finish() throws -> Outcome {
    let ending = try process.finish()
    guard ending.exitCode == 0 else { throw CommandFailure("a worker failed: \(ending.output.suffix(2000))") }
    return Outcome(log: ending.output, cpuSeconds: ending.cpuSeconds)
  }
}
