/// Lets batches of events go before slices, whose work is large and in no hurry (SPEC 6: "an ordinary post is never stuck behind
/// one").
final class Courtesy: Sendable {
  private struct State {
    /// How many batches of events are being applied.
    var applying = 0
    var lastEvents: Instant?
    /// When the slice at hand was begun.
    var sliceStarted: Instant?
  }

  private let state = Monitor(State())

  /// How long one slice gives way, in milliseconds. It must end: large fan-outs have to get on under constant load.
  private static let patience = 50
  /// For how long after their last batch events are expected to go on, in milliseconds.
  private static let memory = 250

  func eventsBegin() {
    state.withLock { $0.applying += 1 }
  }

  func eventsEnd() {
    state.withLock {
      $0.applying -= 1
      $0.lastEvents = .now
    }
  }

  /// Called before each slice. While events come in, slices take turns with rests as long as themselves: so even the slices of
  /// several workers leave the store time for what everybody else is waiting for.
  func giveWay() {
    let end = Instant.after(milliseconds: Self.patience)
    let now = Instant.now
    let restEnd = state.withLock { state in
      guard let events = state.lastEvents, now < events.advanced(milliseconds: Self.memory),
        let started = state.sliceStarted
      else { return now }
      return min(end, now.advanced(milliseconds: Int(now.microseconds(since: started) / 1000)))
    }
    pause(milliseconds: restEnd.millisecondsFromNow)
    _ = state.wait(until: end) { $0.applying == 0 ? () : nil }
    state.withLock { $0.sliceStarted = .now }
  }
}
