private import Glibc

/// A process that a benchmark runs. What it writes goes to a file, so that it never waits for a reader.
final class ChildProcess {
  /// How a process ended.
  struct Ending {
    /// What it wrote to standard output and standard error.
    let output: String
    /// Its exit code; nil if a signal ended it.
    let exitCode: Int?
    /// Processor time, its own and the kernel's for it.
    let cpuSeconds: Double
  }

  private let name: String
  private let path: String
  private var pid = pid_t()
  private var hasEnded = false

  /// Starts a program.
  /// - Parameters:
  ///   - words: the program, looked up in `PATH` if it has no slash, and its arguments.
  ///   - environment: `NAME=VALUE`, besides what this process has. Secrets belong here, as arguments are shown to everybody.
  ///   - path: the file for its output.
  init(_ words: [String], environment: [String] = [], output path: String) throws {
    name = words[0]
    self.path = path
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    unsafe posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
    // Of two values of a variable the first counts.
    var variables = environment
    var next = unsafe environ
    while let variable = unsafe next.pointee {
      unsafe variables.append(String(cString: variable))
      unsafe next += 1
    }
    var arguments = unsafe Self.copies(of: words)
    var settings = unsafe Self.copies(of: variables)
    defer {
      while let argument = unsafe arguments.popLast() { unsafe free(argument) }
      while let variable = unsafe settings.popLast() { unsafe free(variable) }
    }
    let failed = unsafe posix_spawnp(&pid, words[0], &actions, nil, &arguments, &settings)
    if failed != 0 {
      hasEnded = true
      throw CommandFailure("can't start \(words[0]): \(unsafe String(cString: strerror(failed)))")
    }
  }

  /// Ended, if it still runs: no benchmark may leave one behind.
  deinit {
    if hasEnded { return }
    kill(pid, SIGKILL)
    _ = waitpid(pid, nil, 0)
  }

  private static func copies(of words: [String]) -> [UnsafeMutablePointer<CChar>?] {
    unsafe words.map { unsafe strdup($0) } + [nil]
  }

  /// Asks it to end.
  func stop() {
    if !hasEnded { kill(pid, SIGTERM) }
  }

  /// Waits for its end.
  func finish() throws -> Ending {
    var status: Int32 = 0
    var usage = rusage()
    while unsafe wait4(pid, &status, 0, &usage) < 0 {
      if errno != EINTR { throw CommandFailure("can't wait for \(name): \(unsafe String(cString: strerror(errno)))") }
    }
    hasEnded = true
    let microseconds = [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Int($1.tv_sec) * 1_000_000 + Int($1.tv_usec) }
    return Ending(
      output: try output(), exitCode: status & 0x7F == 0 ? Int(status >> 8 & 0xFF) : nil,
      cpuSeconds: Double(microseconds) / 1e6)
  }

  /// What it has written so far.
  func output() throws -> String {
    var lines: [String] = []
    try LineReader(path: path).forEachLine { _, line in
      if let line { lines.append(unsafe line.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }) }
    }
    return lines.joined(separator: "\n")
  }
}
