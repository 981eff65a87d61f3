private import Glibc

/// Sorts lines by their bytes in bounded memory: runs that don't fit are sorted into temporary files and merged.
package struct LineSorter: ~Copyable {
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  private let runSize: Int
  private var bytes: [UInt8] = []
  /// Where each line of `bytes` ends.
  private var ends: [Int] = []
  private var runs: [RunFile] = []

  /// - Parameter runSize: how many bytes of lines are held in memory at a time.
  package init(runSize: Int = 32 << 20) {
    self.runSize = runSize
  }

  package mutating func add(_ line: [UInt8]) throws {
    bytes.append(contentsOf: line)
    ends.append(bytes.count)
    if bytes.count >= runSize { try spill() }
  }

  /// Calls `body` with each line in order.
  package consuming func forEachSorted(_ body: (ArraySlice<UInt8>) throws -> Void) throws {
    if runs.isEmpty {
      for line in sortedLines() { try body(bytes[line]) }
      return
    }
    try spill()
    let readers = runs.map(RunReader.init)
    var heads: [RunReader] = []
    for reader in readers where try reader.advance() { heads.append(reader) }
    heads.sort { $0.precedes($1) }
    while let first = heads.first {
      try body(first.line[...])
      guard try first.advance() else {
        heads.removeFirst()
        continue
      }
      // There are few runs, so moving the first to its new place is quicker than keeping a heap.
      var place = 0
      while place + 1 < heads.count, heads[place + 1].precedes(first) {
        heads[place] = heads[place + 1]
        place += 1
      }
      heads[place] = first
    }
  }

  private func sortedLines() -> [Range<Int>] {
    var lines: [Range<Int>] = []
    lines.reserveCapacity(ends.count)
    var start = 0
    for end in ends {
      lines.append(start..<end)
      start = end
    }
    unsafe bytes.withUnsafeBytes { buffer in
      lines.sort { a, b in
        guard let base = buffer.baseAddress else { return false }
        let order = unsafe memcmp(base + a.lowerBound, base + b.lowerBound, min(a.count, b.count))
        return order != 0 ? order < 0 : a.count < b.count
      }
    }
    return lines
  }

  private mutating func spill() throws {
    if ends.isEmpty { return }
    let run = try RunFile()
    for line in sortedLines() { try run.write(bytes[line]) }
    try run.rewind()
    runs.append(run)
    bytes.removeAll(keepingCapacity: true)
    ends.removeAll(keepingCapacity: true)
  }
}

/// A sorted run in an unnamed temporary file, which is gone when it is closed.
@safe
private final class RunFile {
  private let file: UnsafeMutablePointer<FILE>

  init() throws {
    guard let file = unsafe tmpfile() else { throw RunFile.failure("can't create a temporary file for sorting") }
    unsafe self.file = file
  }

  deinit {
    unsafe fclose(file)
  }

  static func failure(_ what: String) -> LineSorter.Failure {
    let reason = unsafe String(cString: strerror(errno))
    return LineSorter.Failure(description: "\(what): \(reason). Free some space in /tmp.")
  }

  /// A line is its length in four bytes, then itself: lines may hold any byte.
  func write(_ line: ArraySlice<UInt8>) throws {
    var length = UInt32(truncatingIfNeeded: line.count)
    let written = unsafe line.withUnsafeBytes { buffer in
      unsafe fwrite(&length, 4, 1, file) == 1
        && (buffer.isEmpty || fwrite(buffer.baseAddress, buffer.count, 1, file) == 1)
    }
    if !written { throw RunFile.failure("can't write a temporary file for sorting") }
  }

  func rewind() throws {
    if unsafe fflush(file) != 0 || fseek(file, 0, SEEK_SET) != 0 {
      throw RunFile.failure("can't write a temporary file for sorting")
    }
  }

  func read(into line: inout [UInt8]) throws -> Bool {
    var length: UInt32 = 0
    if unsafe fread(&length, 4, 1, file) != 1 {
      if unsafe ferror(file) != 0 { throw RunFile.failure("can't read a temporary file for sorting") }
      return false
    }
    let count = Int(length)
    line = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      let got = unsafe count == 0 || fread(buffer.baseAddress, count, 1, file) == 1
      initialized = got ? count : 0
    }
    if line.count != count { throw RunFile.failure("can't read a temporary file for sorting") }
    return true
  }
}

private final class RunReader {
  private let file: RunFile
  private(set) var line: [UInt8] = []

  init(_ file: RunFile) {
    self.file = file
  }

  func advance() throws -> Bool { try file.read(into: &line) }

  func precedes(_ other: RunReader) -> Bool { line.lexicographicallyPrecedes(other.line) }
}
