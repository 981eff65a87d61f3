import Foundation
import Synchronization

/// A temporary folder, in `TMPDIR`, that is removed with all that is in it when it is no longer used.
final class TestFolder: Sendable {
  let path: String
  private let count = Mutex(0)

  init() throws {
    let name = "fanout-test-" + UUID().uuidString.lowercased()
    path = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent(name).path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// A path that has not been given out before.
  func newFile(_ name: String) -> String {
    let number = count.withLock { count in
      count += 1
      return count
    }
    return file("\(number)-\(name)")
  }

  /// Writes a file and returns its path.
  func write(_ name: String, _ bytes: [UInt8]) throws -> String {
    let path = newFile(name)
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    return path
  }

  func write(_ name: String, _ text: String) throws -> String { try write(name, Array(text.utf8)) }
}
