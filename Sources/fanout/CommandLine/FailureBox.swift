private import Synchronization

/// Why a thread ended, for another to read.
final class FailureBox: Sendable {
  private let state = Mutex<String?>(nil)

  var message: String? { state.withLock { $0 } }

  func set(_ message: String) {
    state.withLock { $0 = $0 ?? message }
  }
}
