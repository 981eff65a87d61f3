import Glibc

// What libFuzzer calls, in the program that Deploy/fuzz.sh builds. FANOUT_FUZZ_TARGET names the target.

private let target: FuzzTarget = {
  let name = unsafe getenv("FANOUT_FUZZ_TARGET").map { unsafe String(cString: $0) }
  if let target = name.flatMap(FuzzTarget.init(rawValue:)) { return target }
  report("FANOUT_FUZZ_TARGET must be one of: \(FuzzTarget.allCases.map(\.rawValue).joined(separator: " "))")
  exit(2)
}()

@_cdecl("LLVMFuzzerTestOneInput")
func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  do {
    try target.check(unsafe Array(UnsafeBufferPointer(start: start, count: count)))
  } catch {
    report("\(error)")
    abort()
  }
  return 0
}

private func report(_ message: String) {
  let line = Array("fuzz: \(message)\n".utf8)
  _ = unsafe write(STDERR_FILENO, line, line.count)
}
