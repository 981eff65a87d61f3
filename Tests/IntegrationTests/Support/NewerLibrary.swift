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
}

extension ChildProcess {
  /// Whether it runs on ``NewerLibrary``.
  var usesNewerLibrary: Bool {
    // The kernel gives it page by page and without a size, so it takes a handle to get at all of it.
    let file = FileHandle(forReadingAtPath: "/proc/\(pid)/maps")
    let maps = String(decoding: file?.readDataToEndOfFile() ?? Data(), as: UTF8.self)
    let libraries = maps.split(separator: "\n").filter { $0.contains("librdkafka") }
    return !libraries.isEmpty && libraries.allSatisfy { $0.hasSuffix("\(NewerLibrary.folder ?? "")/librdkafka.so.1") }
  }
}
