private import Glibc
internal import Synchronization

/// Standard output, written in large pieces.
///
/// A reader that goes away early, as `head` does, ends the program by SIGPIPE, as is usual.
final class Output {
  private var buffer: [UInt8] = []

  static let isTerminal = isatty(STDOUT_FILENO) == 1

  func line(_ text: String = "") {
    buffer.append(contentsOf: text.utf8)
    end()
  }

  func line(_ bytes: some Sequence<UInt8>) {
    buffer.append(contentsOf: bytes)
    end()
  }

  private func end() {
    buffer.append(0x0A)
    if buffer.count >= 1 << 16 || Self.isTerminal { flush() }
  }

  /// Ends the program with status 1 where the output can't be written: cut short, it would pass for the whole.
  func flush() {
    defer { buffer.removeAll(keepingCapacity: true) }
    guard let failure = writeAll(buffer, to: STDOUT_FILENO), failure != EPIPE else { return }
    complain("can't write to standard output: \(unsafe String(cString: strerror(failure)))")
    exit(ExitCode.failed.rawValue)
  }

  deinit { flush() }
}

/// Writes a message to standard error.
func complain(_ message: String) {
  _ = writeAll(Array("fanout: \(message)\n".utf8), to: STDERR_FILENO)
}

/// Writes a line to standard error as it is.
func note(_ line: String) {
  _ = writeAll(Array("\(line)\n".utf8), to: STDERR_FILENO)
}

/// - Returns: the error number if something could not be written.
private func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
  unsafe bytes.withUnsafeBytes { bytes in
    var done = 0
    while done < bytes.count {
      let count = unsafe write(descriptor, bytes.baseAddress.map { unsafe $0 + done }, bytes.count - done)
      if count < 0 {
        if errno == EINTR { continue }
        return errno
      }
      done += count
    }
    return nil
  }
}

/// A number with `digits` after the point.
func fixed(_ value: Double, _ digits: Int) -> String {
  var scale = 1.0
  for _ in 0..<digits { scale *= 10 }
  guard value.isFinite, abs(value) < 1e15 else { return "?" }
  let scaled = Int64((abs(value) * scale).rounded())
  let whole = String(scaled / Int64(scale))
  let sign = value < 0 && scaled > 0 ? "-" : ""
  if digits == 0 { return sign + whole }
  let fraction = String(scaled % Int64(scale))
  return sign + whole + "." + String(repeating: "0", count: digits - fraction.count) + fraction
}

/// A whole number with its digits in groups of three: 1,234,567.
func grouped(_ value: Int) -> String {
  let digits = String(value.magnitude)
  var text = ""
  for (index, digit) in digits.enumerated() {
    if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
    text.append(digit)
  }
  return value < 0 ? "-" + text : text
}

func grouped(_ value: Double) -> String { value.isFinite && abs(value) < 1e15 ? grouped(Int(value.rounded())) : "?" }
