import Glibc
import Synchronization
import Testing

/// A file system of some megabytes that a test may fill or set read-only. It is gone when it is removed, or when the test runner
/// ends, in whatever way.
@safe
final class SmallDisk: Sendable {
  let path: String
  /// A shell that waits for the end of this pipe, which comes with the end of the runner at the latest, and cleans up then.
  private nonisolated(unsafe) let cleaner: UnsafeMutablePointer<FILE>

  private let isRemoved = Mutex(false)

  static let isPossible = (try? SmallDisk(megabytes: 1)) != nil
  static let missing: Comment = "SKIPPED: no file system can be mounted; run the tests as root"

  private static let count = Atomic(0)

  /// - Parameter owner: a user of the system.
  init(megabytes: Int, owner: String = "root") throws {
    let number = Self.count.add(1, ordering: .relaxed).newValue
    let path = "/tmp/fanout-disk-\(getpid())-\(number)"
    self.path = path
    // "e" keeps it from all that tests start, so that nobody but the runner holds it open.
    let cleaning = "exec >/dev/null 2>&1; trap '' HUP INT TERM; read -r line; umount -l '\(path)'; rmdir '\(path)'"
    guard let cleaner = unsafe popen(cleaning, "we") else { throw TestFailure("no shell can be started") }
    unsafe self.cleaner = cleaner
    try run("mkdir '\(path)' && mount -t tmpfs -o size=\(megabytes)m tmpfs '\(path)' && chown \(owner) '\(path)'")
  }

  deinit { remove() }

  func remove() {
    isRemoved.withLock { isRemoved in
      if !isRemoved { unsafe pclose(cleaner) }
      isRemoved = true
    }
  }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Takes all the room that is left, but for some bytes.
  func fill(leaving bytes: Int = 0) throws {
    try run("head -c $(($(df --output=avail -B1 '\(path)' | tail -1) - \(bytes))) /dev/zero >'\(file("ballast"))'")
  }

  func makeRoom() throws { try run("rm '\(file("ballast"))'") }

  /// Fails while somebody has a file open for writing.
  func setReadOnly(_ isReadOnly: Bool) throws { try run("mount -o remount,\(isReadOnly ? "ro" : "rw") '\(path)'") }

  private func run(_ command: String) throws {
    let status = unsafe system("exec 2>/dev/null; \(command)")
    if status != 0 { throw TestFailure("status \(status) of: \(command)") }
  }
}
