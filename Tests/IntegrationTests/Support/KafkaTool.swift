import Foundation
import Testing

/// Kafka's own tools, which come with the real Kafka of the shared data.
enum KafkaTool {
  static let isPresent = RealKafka.isPresent && Shared.isPresent
  static let missing: Comment = "SKIPPED: no real Kafka with its tools; see FANOUT_TEST_BROKERS and FANOUT_TEST_SHARED"

  /// Runs a tool to its end.
  static func run(_ arguments: [String]) async throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: try #require(Shared.path) + "/kafka/kafka")
    process.arguments = ["tool"] + arguments
    let errors = Pipe()
    process.standardOutput = FileHandle.nullDevice
    process.standardError = errors
    try process.run()
    try await eventually("kafka tool \(arguments[0]) ends", else: "it hangs") { !process.isRunning }
    if process.terminationStatus != 0 {
      let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      throw TestFailure("kafka tool \(arguments[0]) failed: \(text)")
    }
  }
}
