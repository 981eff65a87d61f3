import Foundation
import SocialEvents
import Testing

/// A worker whose store gets into one trouble after another: it must wait each out, stay in its group, and say what is wrong.
struct Endurance {
  let deployment: Deployment
  let worker: ChildProcess
  private let readyFile: String

  static func start(_ deployment: Deployment, environment: [String: String] = [:]) async throws -> Endurance {
    let readyFile = deployment.folder.file("ready")
    let worker = try deployment.startWorker(
      ["--max-in-flight", "300", "--ready-file", readyFile], environment: environment)
    let endurance = Endurance(deployment: deployment, worker: worker, readyFile: readyFile)
    try await endurance.isReady(true)
    return endurance
  }

  /// - Parameters:
  ///   - message: what the worker has to say of the trouble.
  ///   - tries: how often it must have tried before the trouble ends.
  ///   - work: gives the worker something to do.
  func outlasts(
    _ message: String, tries: Int = 1, cause: () async throws -> Void, work: () async throws -> Void,
    mend: () async throws -> Void
  ) async throws {
    let before = failures(message)
    try await cause()
    try await work()
    try await eventually("it has met \"\(message)\" \(tries) times", else: worker.report) {
      try [worker].mustRun()
      return failures(message) >= before + tries
    }
    try await isReady(false)
    #expect(try deployment.lag() > 0)
    try await mend()
    try await deployment.allAcknowledged(by: [worker])
    try await isReady(true)
  }

  func ends() async throws {
    let report = try await worker.stopInOrder()
    #expect(report.retries > 0)
    #expect(report.deadLetters == 0)
    #expect(report["rebalances"] == 1, "it kept its place in the group all the time")
    #expect(try deployment.lag() == 0)
    #expect(try deployment.records(of: [deployment.topics.deadLetters]).isEmpty)
  }

  private func failures(_ message: String) -> Int {
    worker.standardError.split(separator: "\n").count { $0.contains(message) && $0.contains("; trying again in ") }
  }

  private func isReady(_ isReady: Bool) async throws {
    try await eventually("the worker is \(isReady ? "" : "not ")ready", else: worker.report) {
      try [worker].mustRun()
      return FileManager.default.fileExists(atPath: readyFile) == isReady
    }
  }
}
