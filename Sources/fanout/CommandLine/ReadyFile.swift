private import Glibc

/// A file that is there while a worker is ready, for probes that look for it.
struct ReadyFile: Sendable {
  private let path: String

  /// A file that an earlier worker left behind goes.
  init(_ path: String) throws {
    self.path = path
    set(false)
    // A folder that can't be written is found now, and not when the worker has long been ready.
    guard set(true) else {
      throw CommandFailure("--ready-file: can't write \(path): \(unsafe String(cString: strerror(errno)))")
    }
    set(false)
  }

  @discardableResult
  func set(_ isReady: Bool) -> Bool {
    if !isReady { return unsafe unlink(path) == 0 }
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
    if descriptor < 0 { return false }
    close(descriptor)
    return true
  }
}
