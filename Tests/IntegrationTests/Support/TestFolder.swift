import Foundation
import Glibc
import Synchronization

/// A temporary folder, in `TMPDIR`, that is removed with all that is in it when it is no longer used.
final class TestFolder: Sendable {
  let path: String
  private let count = Mutex(0)

  init() throws {
    let name = "fanout-test-" + UUID().uuidString.lowercased()
    path = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent(name).path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    Self.endWithRunner
    Self.paths.withLock { _ = $0.insert(path) }
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
    Self.paths.withLock { _ = $0.remove(path) }
  }

  /// Folders that are in use. Those of a whole run are still so at its end.
  private static let paths = Mutex<Set<String>>([])
  private static let endWithRunner: Void = {
    atexit { TestFolder.paths.withLock { for path in $0 { try? FileManager.default.removeItem(atPath: path) } } }
  }()

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
