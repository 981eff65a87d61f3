import Foundation

/// What the kernel tells about a process.
extension ChildProcess {
  /// A file of `/proc/PID`. The kernel gives it page by page and without a size, so it takes a handle to get at all of it.
  private static func file(_ pid: pid_t, _ name: String) -> String {
    let file = FileHandle(forReadingAtPath: "/proc/\(pid)/\(name)")
    return String(decoding: file?.readDataToEndOfFile() ?? Data(), as: UTF8.self)
  }

  /// The most memory that it has had resident so far, in megabytes; 0 once it has ended.
  var peakMemory: Int {
    let line = Self.file(pid, "status").split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return line.flatMap { Int($0.filter(\.isNumber)) }.map { $0 / 1024 } ?? 0
  }

  /// The names of the libraries that it has loaded.
  var libraries: Set<String> {
    Set(
      Self.file(pid, "maps").split(separator: "\n").compactMap { line in
        line.firstIndex(of: "/").map { String(line[$0...]) }
      })
  }

  /// Its children, with their arguments.
  var children: [(pid: pid_t, arguments: [String])] {
    Self.file(pid, "task/\(pid)/children").split(separator: " ").compactMap { pid_t($0) }.map { child in
      (child, Self.file(child, "cmdline").split(separator: "\0").map(String.init))
    }
  }

  /// The addresses that it listens at, as the kernel writes them: 0100007F is 127.0.0.1.
  var listeningAddresses: [String] {
    let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd")) ?? []
    let sockets = Set(
      descriptors.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/fd/\($0)") })
    return ["net/tcp", "net/tcp6"].flatMap { name in
      Self.file(pid, name).split(separator: "\n").dropFirst().compactMap { line -> String? in
        // Number, local and remote address, state (0A: it listens), and six more before the socket's number.
        let fields = line.split(separator: " ")
        guard fields.count > 9, fields[3] == "0A", sockets.contains("socket:[\(fields[9])]") else { return nil }
        return String(fields[1].prefix { $0 != ":" })
      }
    }
  }
}
