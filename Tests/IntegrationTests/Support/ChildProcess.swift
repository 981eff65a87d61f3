import Foundation
import Glibc
import Synchronization

/// A program that runs beside the tests: its output goes to files, it can be signalled, and it never outlives its owner.
final class ChildProcess: Sendable {
  let pid: pid_t
  let name: String
  private let outputPath: String
  private let errorPath: String
  /// How it ended: an exit status, or 128 plus the signal that killed it, as shells have it. Nil while it runs.
  private let ending = Mutex<Int32?>(nil)

  /// - Parameters:
  ///   - input: the file that it reads as its standard input.
  ///   - folder: where the files for its output are made.
  init(
    _ path: String, _ arguments: [String], environment: [String: String], input: String = "/dev/null",
    in folder: TestFolder
  ) throws {
    name = ([URL(fileURLWithPath: path).lastPathComponent] + arguments).joined(separator: " ")
    outputPath = folder.newFile("stdout")
    errorPath = folder.newFile("stderr")
    pid = try Self.spawn(
      path, arguments, environment.map { "\($0.key)=\($0.value)" }, files: [input, outputPath, errorPath])
    Self.note(pid)
  }

  deinit { kill() }

  // MARK: Watching

  var standardOutput: String { Self.text(of: outputPath) }
  var standardError: String { Self.text(of: errorPath) }

  /// The exit status, nil while it runs.
  var status: Int32? {
    ending.withLock { ending in
      if ending == nil {
        var word: Int32 = 0
        if unsafe waitpid(pid, &word, WNOHANG) == pid {
          ending = word & 0x7F == 0 ? (word >> 8) & 0xFF : 128 + (word & 0x7F)
          Self.forget(pid)
        }
      }
      return ending
    }
  }

  var isRunning: Bool { status == nil }

  /// Waits for the end.
  /// - Returns: the exit status.
  func end(within seconds: Int = Patience.seconds) async throws -> Int32 {
    try await eventually("\(name) ends", within: seconds, else: self.report) { self.status != nil }
    return status ?? -1
  }

  /// What it wrote, for the report of a failure.
  var report: String {
    let error = standardError
    return "`\(name)` (status \(status.map(String.init) ?? "still running")) wrote:\n"
      + standardOutput.suffix(2000) + "\n--- and to standard error:\n" + error.suffix(4000)
  }

  // MARK: Ending

  func signal(_ number: Int32) {
    // A process that was waited for is gone, and its number may be another's.
    ending.withLock { if $0 == nil { _ = Glibc.kill(pid, number) } }
  }

  /// Stops it where it is, until SIGCONT.
  func suspend() async throws {
    signal(SIGSTOP)
    try await eventually("\(name) is suspended", else: self.report) {
      let stat = Self.text(of: "/proc/\(self.pid)/stat")
      // What follows the name in parentheses is the state.
      return stat.split(separator: ")").last?.hasPrefix(" T") == true
    }
  }

  /// Ends it at once, if it still runs.
  func kill() {
    guard isRunning else { return }
    signal(SIGKILL)
    ending.withLock { ending in
      var word: Int32 = 0
      if ending == nil, unsafe waitpid(pid, &word, 0) == pid { ending = 128 + (word & 0x7F) }
    }
    Self.forget(pid)
  }

  // MARK: Starting

  private static func spawn(
    _ path: String, _ arguments: [String], _ environment: [String], files: [String]
  ) throws -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    for (descriptor, file) in files.enumerated() {
      let flags = descriptor == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND
      unsafe posix_spawn_file_actions_addopen(&actions, Int32(descriptor), file, flags, 0o600)
    }
    // A runner that was started in the background ignores SIGINT; its children should not.
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe posix_spawnattr_setsigmask(&attributes, &signals)
    for number in [SIGINT, SIGTERM, SIGPIPE] { unsafe sigaddset(&signals, number) }
    unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var pid: pid_t = 0
    let code = unsafe withCStrings([path] + arguments) { words in
      unsafe withCStrings(environment) { unsafe posix_spawn(&pid, path, &actions, &attributes, words, $0) }
    }
    if code != 0 { throw TestFailure("can't start \(path): \(unsafe String(cString: strerror(code)))") }
    return pid
  }

  private static func withCStrings<R>(
    _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> R
  ) -> R {
    var pointers = unsafe strings.map { unsafe strdup($0) } + [nil]
    defer { for index in unsafe pointers.indices { unsafe free(pointers[index]) } }
    return unsafe pointers.withUnsafeMutableBufferPointer { unsafe body($0.baseAddress!) }
  }

  private static func text(of path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
  }

  // MARK: Cleaning up

  /// A folder with a file for each process that runs, so that a runner that was itself killed can be cleaned up after.
  private static let notes = ProcessInfo.processInfo.environment["FANOUT_TEST_PIDS"]

  /// What has to be ended when the runner ends, owned or not: a failed test may leave something that owns a process.
  private static let running = Mutex<Set<pid_t>>([])
  private static let endsWithRunner: Void = {
    atexit { ChildProcess.running.withLock { for pid in $0 { _ = Glibc.kill(pid, SIGKILL) } } }
  }()

  private static func note(_ pid: pid_t) {
    endsWithRunner
    running.withLock { _ = $0.insert(pid) }
    if let notes { _ = FileManager.default.createFile(atPath: "\(notes)/\(pid)", contents: nil) }
  }

  private static func forget(_ pid: pid_t) {
    running.withLock { _ = $0.remove(pid) }
    if let notes { try? FileManager.default.removeItem(atPath: "\(notes)/\(pid)") }
  }
}
