private import Glibc

/// A file with secrets. What is wrong with it is said by its name, and never with anything that is in it.
package enum SecretFile {
  private static let longest = 1 << 16

  /// The one secret of a file: its first line, since editors end a line that nobody meant to be a part of it.
  package static func password(_ path: String, for option: Option) throws -> String {
    guard let secret = lines(try read(path, for: option)).first ?? nil, !secret.isEmpty else {
      throw UsageError("--\(option.name): \(path) must hold the secret on its first line, as UTF-8")
    }
    return secret
  }

  /// Properties, one `NAME=VALUE` a line, as in the files of Kafka's own tools. Lines that begin with # don't count.
  package static func properties(_ path: String, for option: Option) throws -> [(name: String, value: String)] {
    var properties: [(name: String, value: String)] = []
    for (index, line) in lines(try read(path, for: option)).enumerated() {
      let text = line.map { trimmed($0[...]) }
      if let text, text.isEmpty || text.hasPrefix("#") { continue }
      // What comes before "=" may be a secret, where somebody writes NAME: VALUE or NAME VALUE, as Java's tools read it, too.
      guard let text, let equals = text.firstIndex(of: "="), isName(trimmed(text[..<equals])) else {
        throw UsageError("--\(option.name): line \(index + 1) of \(path) must be NAME=VALUE, as UTF-8")
      }
      properties.append((trimmed(text[..<equals]), trimmed(text[text.index(after: equals)...])))
    }
    return properties
  }

  private static func isName(_ text: String) -> Bool {
    !text.isEmpty
      && text.unicodeScalars.allSatisfy {
        $0.isASCII && ($0.properties.isAlphabetic || "0123456789._-".unicodeScalars.contains($0))
      }
  }

  /// The lines of a file; nil for those that are no text.
  private static func lines(_ bytes: [UInt8]) -> [String?] {
    bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
      let line = line.last == 0x0D ? line.dropLast() : line
      return line.contains(0) ? nil : String(validating: line, as: UTF8.self)
    }
  }

  private static func trimmed(_ text: Substring) -> String {
    var text = text
    while text.first?.isWhitespace == true { text.removeFirst() }
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }

  private static func read(_ path: String, for option: Option) throws -> [UInt8] {
    func failure() -> UsageError {
      UsageError("--\(option.name): can't read \(path): \(unsafe String(cString: strerror(errno)))")
    }
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 { throw failure() }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: longest + 1)
    var count = 0
    while count < bytes.count {
      let more = unsafe bytes.withUnsafeMutableBytes {
        unsafe Glibc.read(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
      }
      if more < 0 && errno == EINTR { continue }
      if more < 0 { throw failure() }
      if more == 0 { break }
      count += more
    }
    if count > longest { throw UsageError("--\(option.name): \(path) is longer than \(longest) bytes") }
    return Array(bytes[..<count])
  }
}
