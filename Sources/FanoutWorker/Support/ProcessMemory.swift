private import Glibc

/// The most memory that this process has had resident so far, in KiB; 0 where the system does not tell.
///
/// Not from `getrusage`, whose figure begins with that of the process which started this one.
package func peakMemoryKilobytes() -> Int {
  guard let file = unsafe fopen("/proc/self/status", "r") else { return 0 }
  defer { unsafe fclose(file) }
  var line = [CChar](repeating: 0, count: 256)
  while unsafe fgets(&line, Int32(line.count), file) != nil {
    let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    if text.hasPrefix("VmHWM:") { return Int(text.filter(\.isNumber)) ?? 0 }
  }
  return 0
}
