import Foundation
import Testing

/// The brokers that tests run on.
enum BrokerKind: String, CaseIterable, CustomTestStringConvertible {
  /// `fanout dev --broker-only`, a process for each test.
  case embedded
  /// The brokers of `FANOUT_TEST_BROKERS`, with topics of their own for each test.
  case kafka

  /// Those there are. That there is no real Kafka is said by a test of its own.
  static let available = RealKafka.isPresent ? allCases : [.embedded]

  var testDescription: String { rawValue }
}

/// A real Kafka, which whoever runs the tests has started.
enum RealKafka {
  static let brokers = ProcessInfo.processInfo.environment["FANOUT_TEST_BROKERS"].flatMap { $0.isEmpty ? nil : $0 }
  static let isPresent = brokers != nil
  static let missing: Comment = "SKIPPED: no real Kafka; give its address as FANOUT_TEST_BROKERS"

  /// A prefix for topics that no other test and no other run has.
  static func newPrefix() -> String { "t\(UInt32.random(in: 0...UInt32.max)).\(UInt16.random(in: 0...UInt16.max))." }
}

/// Data and tools that are not part of the package.
enum Shared {
  /// `FANOUT_TEST_SHARED`: the folder with `data/higgs_events.py` and `kafka/kafka`.
  static let path = ProcessInfo.processInfo.environment["FANOUT_TEST_SHARED"].flatMap { $0.isEmpty ? nil : $0 }
  static let isPresent = path != nil
  static let missing: Comment = "SKIPPED: no shared data; give its folder as FANOUT_TEST_SHARED"
}

/// The embedded broker as a process of its own (`fanout dev --broker-only`).
final class EmbeddedBrokerProcess: Sendable {
  let brokers: String
  let process: ChildProcess

  static func start(topicPrefix: String, partitions: Int, in folder: TestFolder) async throws -> EmbeddedBrokerProcess {
    let process = try Fanout.start(
      ["dev", "--broker-only", "--topic-prefix", topicPrefix, "--partitions", "\(partitions)"], in: folder)
    var brokers: Substring?
    try await eventually("the embedded broker prints its address", else: process.report) {
      if !process.isRunning { throw TestFailure("the embedded broker ended: \(process.report)") }
      brokers = process.standardOutput.split(separator: "\n").first { $0.hasPrefix("brokers=") }?.dropFirst(8)
      return brokers != nil
    }
    return EmbeddedBrokerProcess(process, brokers: String(brokers ?? ""))
  }

  private init(_ process: ChildProcess, brokers: String) {
    self.process = process
    self.brokers = brokers
  }
}
