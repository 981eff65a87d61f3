private import Dispatch
private import Synchronization

/// Turned once, by a signal; whoever waits goes on, and what was to be done then is done.
final class StopSwitch: Sendable {
  private struct State {
    var isTurned = false
    var action: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())
  private let turned = DispatchSemaphore(value: 0)

  func turn() {
    let action = state.withLock { state in
      state.isTurned = true
      return state.action
    }
    turned.signal()
    action?()
  }

  func wait() { turned.wait() }

  /// Done when the switch is turned, at once if it has been.
  func onTurn(_ action: @escaping @Sendable () -> Void) {
    let isTurned = state.withLock { state in
      state.action = action
      return state.isTurned
    }
    if isTurned { action() }
  }
}
