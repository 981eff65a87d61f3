import Foundation

/// How long tests wait for what must happen: much longer than it takes, as the machine may be busy with other things.
enum Patience {
  static let seconds = 120
  /// And at least this often they look: where other tests hold the threads, a deadline may pass between two looks.
  static let looks = 50
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
  var looks = 0
  while true {
    if try await condition() { return }
    looks += 1
    if ContinuousClock.now > deadline, looks >= Patience.looks {
      throw TestFailure("waited \(seconds) s in vain until \(what). \(details())")
    }
    try await Task.sleep(for: .milliseconds(20))
  }
}
