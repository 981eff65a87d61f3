import Foundation
import Testing

/// A newer librdkafka than the system's, for the same program to run on.
enum NewerLibrary {
  /// `FANOUT_TEST_NEWER_LIBRDKAFKA`: a folder with a `librdkafka.so.1`.
  static let folder = ProcessInfo.processInfo.environment["FANOUT_TEST_NEWER_LIBRDKAFKA"].flatMap {
    $0.isEmpty ? nil : $0
  }
  static let isPresent = folder != nil
  static let missing: Comment =
    "SKIPPED: no newer librdkafka; give a folder with its librdkafka.so.1 as FANOUT_TEST_NEWER_LIBRDKAFKA"

  /// Variables with which a command runs on it.
  static let environment = ["LD_LIBRARY_PATH": folder ?? ""]

  static var path: String { "\(folder ?? "")/librdkafka.so.1" }
}
