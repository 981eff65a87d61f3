import Glibc

/// What a worker says it did, from the last line of its log.
struct WorkerReport {
  private let counts: [String: Int]

  init(log: String) throws {
    guard let line = log.split(separator: "\n").last(where: { $0.contains("worker stopped:") }) else {
      throw TestFailure("no final counts in the worker's log:\n\(log)")
    }
    // Words such as records=42.
    var counts: [String: Int] = [:]
    for word in line.split(separator: " ") {
      let parts = word.split(separator: "=")
      if parts.count == 2, let count = Int(parts[1]) { counts[String(parts[0])] = count }
    }
    self.counts = counts
  }

  subscript(name: String) -> Int { counts[name] ?? 0 }

  var records: Int { self["records"] }
  var events: Int { self["events"] }
  var changes: Int { self["changes"] }
  var slices: Int { self["slices"] }
  var slicesHandedOver: Int { self["slices_handed_over"] }
  var tombstones: Int { self["tombstones"] }
  var deadLetters: Int { self["dead_letters"] }
  var retries: Int { self["retries"] }
}

extension ChildProcess {
  /// Waits until a line of the log says so.
  func says(_ text: String) async throws {
    try await eventually("`\(name)` says \"\(text)\"", else: self.report) {
      if self.standardError.contains(text) { return true }
      if !self.isRunning { throw TestFailure("it ended without saying \"\(text)\": \(self.report)") }
      return false
    }
  }

  /// Waits until the worker has joined its group.
  func isAssigned() async throws { try await says(" assigned ") }

  /// Asks a worker to stop, and waits until it has.
  @discardableResult
  func stopInOrder(by number: Int32 = SIGTERM) async throws -> WorkerReport {
    signal(number)
    let status = try await end()
    if status != 0 { throw TestFailure("stopped with status \(status): \(report)") }
    return try WorkerReport(log: standardError)
  }
}

extension [ChildProcess] {
  /// Fails if one of the workers has ended.
  func mustRun() throws {
    for worker in self where !worker.isRunning { throw TestFailure("a worker ended: \(worker.report)") }
  }
}
