/// What the fuzzers of `Deploy/fuzz.sh` feed with bytes. Each target takes any bytes there are, and throws a `Violation` where
/// something does not keep its promise. What ends the process, hangs or takes memory without bounds, the fuzzer sees by itself.
enum FuzzTarget: String, CaseIterable, Sendable {
  /// Record → event → facts.
  case events
  /// Records of the dead letters, and what is printed of them.
  case letters
  /// What is written as one string: keys of tasks, notes of offsets, cursors, times, ids.
  case keys
  /// A command's words and variables.
  case options
  /// What `--store` names.
  case addresses

  func check(_ input: [UInt8]) throws {
    switch self {
    case .events: try EventTarget.check(input)
    case .letters: try LetterTarget.check(input)
    case .keys: try KeyTarget.check(input)
    case .options: try OptionTarget.check(input)
    case .addresses: try AddressTarget.check(input)
    }
  }
}

/// A promise that was not kept.
struct Violation: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

func promise(_ holds: Bool, _ what: @autoclosure () -> String) throws {
  if !holds { throw Violation(what()) }
}
