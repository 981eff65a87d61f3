import Foundation
import Testing

/// What the system answers to a program that writes to the files of a folder, by `Tests/FaultInjection/DiskFaults.c`.
struct DiskFault: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let error: Int32
  /// Whether files that were open then fail for good.
  let isForGood: Bool
  /// What is said of it.
  let message: String

  static let all = [
    DiskFault(
      testDescription: "set read-only after an error", error: EROFS, isForGood: false,
      message: "can't be written"),
    DiskFault(
      testDescription: "over the quota", error: EDQUOT, isForGood: false, message: "has no room on its disk"),
    DiskFault(
      testDescription: "gone, and back behind a new mount", error: EIO, isForGood: true,
      message: "can't be reached"),
  ]

  /// Variables that let `begin` and `end` reach a process.
  static func environment(of deployment: Deployment) throws -> [String: String] {
    FaultInjection.preload.merging(
      ["DISK_FAULT_FOLDER": try deployment.store.path, "DISK_FAULT": Self.file(deployment)]) { $1 }
  }

  func begin(in deployment: Deployment) throws {
    let number = isForGood ? -error : error
    try Data("\(number)".utf8).write(to: URL(fileURLWithPath: Self.file(deployment)), options: .atomic)
  }

  func end(in deployment: Deployment) throws { try FileManager.default.removeItem(atPath: Self.file(deployment)) }

  private static func file(_ deployment: Deployment) -> String { deployment.folder.file("fault") }
}
