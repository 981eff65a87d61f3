import Foundation
import Synchronization

/// Emits a file of events in pieces, so that there is work for as long as a test has something to do, and then the rest at once.
final class GradualLoad: Sendable {
  private let deployment: Deployment
  private let file: String
  private let isHurried = Mutex(false)

  init(_ file: String, on deployment: Deployment) {
    self.file = file
    self.deployment = deployment
  }

  /// Leaves no more time between the pieces.
  func hurry() { isHurried.withLock { $0 = true } }

  /// Returns when all is acknowledged. A piece that was not, as when the brokers are away, is emitted again; so some of it may
  /// be there twice.
  func run() async throws {
    var rest = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")[...]
    while !rest.isEmpty {
      let isHurried = isHurried.withLock { $0 }
      let piece = rest.prefix(isHurried ? rest.count : 200)
      rest.removeFirst(piece.count)
      let path = try deployment.folder.write("piece.ndjson", piece.map(String.init).joinedLines)
      try await eventually("a piece of the history is emitted", within: 300) {
        try await deployment.run(["emit", path], expecting: nil).status == 0
      }
      if !isHurried { try await Task.sleep(for: .milliseconds(250)) }
    }
  }
}
