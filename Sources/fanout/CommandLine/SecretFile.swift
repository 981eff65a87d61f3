private import Glibc

/// A file that holds one secret: its first line, since editors end a line that nobody meant to be a part of it.
enum SecretFile {
  private static let longest = 4096

  /// - Throws: `UsageError`, which names the option and the file, and nothing of what is in it.
  static func read(_ path: String, for option: Option) throws -> String {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 {
      throw UsageError("--\(option.name): can't read \(path): \(unsafe String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: longest + 1)
    var count = 0
    while count < bytes.count {
      let more = unsafe bytes.withUnsafeMutableBytes {
        unsafe Glibc.read(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
      }
      if more < 0 && errno == EINTR { continue }
      if more < 0 {
        throw UsageError("--\(option.name): can't read \(path): \(unsafe String(cString: strerror(errno)))")
      }
      if more == 0 { break }
      count += more
    }
    let line = bytes[..<count].prefix { $0 != 0x0A && $0 != 0x0D }
    guard !line.isEmpty, line.count <= longest, !line.contains(0), let secret = String(validating: line, as: UTF8.self)
    else { throw UsageError("--\(option.name): \(path) must hold the secret on its first line, as UTF-8") }
    return secret
  }
}
