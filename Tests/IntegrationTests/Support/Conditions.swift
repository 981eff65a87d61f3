import Foundation

/// How long tests wait for what must happen: much longer than it takes, as the machine may be busy with other things.
enum Patience {
  static let seconds = 120
}

/// Why a test can't go on.
struct TestFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// Waits until a condition holds.
/// - Parameters:
///   - what: what is waited for, as in "the worker ends".
///   - details: what to report besides when it does not come true.
func eventually(
  _ what: String, within seconds: Int = Patience.seconds, else details: @autoclosure () -> String = "",
  _ condition: () async throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + .seconds(seconds)
  while true {
    if try await condition() { return }
    if ContinuousClock.now > deadline {
      throw TestFailure("waited \(seconds) s in vain until \(what). \(details())")
    }
    try await Task.sleep(for: .milliseconds(20))
  }
}
