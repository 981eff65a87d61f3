import Foundation

/// Real histories with published digests, from the shared data (its README).
enum Higgs {
  static let small = workload(
    "2,000 interactions", ["--interactions", "2000"],
    digest: "87d7e3c8a588f2e774c91a44953647e28a6d6887d353955c0a9b8a7797fc65d7", registers: 3500, sliceSize: 50)
  static let shuffled = workload(
    "2,000 interactions, shuffled, with duplicates",
    ["--interactions", "2000", "--shuffle", "7", "--duplicate", "0.3"],
    digest: "87d7e3c8a588f2e774c91a44953647e28a6d6887d353955c0a9b8a7797fc65d7", registers: 3500, sliceSize: 50)
  static let large = workload(
    "20,000 interactions", ["--interactions", "20000"],
    digest: "bc2e2a027c8a446f21fac989f6145a3ef1b34e221f959b5b04be6bd8f8259aea", registers: 35_000, sliceSize: 50)
  static let smallFeeds = workload(
    "2,000 interactions, feed limit 20", ["--interactions", "2000"], feedLimit: 20,
    digest: "b5765800ccac8e6562d5e2e8d17da7906a0b0bb3ebe61f12da5a858067e2c919", registers: 3500, sliceSize: 50)
  static let largeSmallFeeds = workload(
    "20,000 interactions, feed limit 20", ["--interactions", "20000"], feedLimit: 20,
    digest: "a6cc7cafb8c6ee525b90d1d6d290ef438a6db7ce7c3aeb16ff8198a52dad4a63", registers: 35_000, sliceSize: 50)

  static let largeShuffled = workload(
    "20,000 interactions, shuffled, with duplicates",
    ["--interactions", "20000", "--shuffle", "7", "--duplicate", "0.3"],
    digest: "bc2e2a027c8a446f21fac989f6145a3ef1b34e221f959b5b04be6bd8f8259aea", registers: 35_000, sliceSize: 50)

  private static let files = HiggsFiles()

  /// A file of the history's events, one a line.
  static func file(_ options: [String]) async throws -> String { try await files.path(of: options) }

  private static func workload(
    _ name: String, _ options: [String], feedLimit: Int? = nil, digest: String, registers: Int, sliceSize: Int
  ) -> Workload {
    Workload(
      testDescription: name, environment: feedLimit.map { ["FANOUT_FEED_LIMIT": "\($0)"] } ?? [:], digest: digest,
      registers: registers, sliceSize: sliceSize
    ) { deployment in
      try await deployment.emit(try await files.path(of: options))
    }
  }
}

/// Generates each file of events once.
private actor HiggsFiles {
  private var folder: TestFolder?
  private var files: [[String]: Task<String, any Error>] = [:]

  func path(of options: [String]) async throws -> String {
    let folder = try self.folder ?? TestFolder()
    self.folder = folder
    let task =
      files[options]
      ?? Task {
        guard let shared = Shared.path else { throw TestFailure("no shared data") }
        let script = "exec python3 \"$0/data/higgs_events.py\" \"$@\" > \"$OUTPUT\""
        let path = folder.newFile("higgs.ndjson")
        let python = try ChildProcess(
          "/bin/sh", ["-c", script, shared] + options,
          environment: Fanout.environment.merging(["OUTPUT": path]) { $1 }, in: folder)
        let status = try await python.end()
        if status != 0 { throw TestFailure("higgs_events.py failed: \(python.report)") }
        return path
      }
    files[options] = task
    return try await task.value
  }
}
