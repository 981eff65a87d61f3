import Foundation
import PostgresStore

/// Stops a writer at one of the boundaries that it comes to, until it is let go on.
final class Gate: Sendable {
  private let condition = NSCondition()
  private nonisolated(unsafe) var boundary = 0
  private nonisolated(unsafe) var reached = 0
  private nonisolated(unsafe) var isStopped = false
  private nonisolated(unsafe) var isFinished = false
  private nonisolated(unsafe) var isOpen = true

  /// Makes ready for a writer that is to stop at its `boundary`th boundary, from 1.
  func close(at boundary: Int) {
    condition.withLock {
      unsafe self.boundary = boundary
      unsafe (reached, isStopped, isFinished, isOpen) = (0, false, false, false)
    }
  }

  /// The writer has come to a boundary.
  func pass(_ step: Step) {
    condition.withLock {
      unsafe reached += 1
      guard unsafe !isOpen && reached == boundary else { return }
      unsafe isStopped = true
      condition.broadcast()
      while unsafe !isOpen { condition.wait() }
    }
  }

  /// The writer has done all that it had to do.
  func finish() {
    condition.withLock {
      unsafe isFinished = true
      condition.broadcast()
    }
  }

  /// Waits until the writer has come to the boundary or is done.
  /// - Returns: whether it has come there.
  func waitUntilStopped() -> Bool {
    condition.withLock {
      while unsafe !isStopped && !isFinished { condition.wait() }
      return unsafe isStopped
    }
  }

  func open() {
    condition.withLock {
      unsafe isOpen = true
      condition.broadcast()
    }
  }
}
