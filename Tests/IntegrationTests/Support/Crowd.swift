import Foundation
import Synchronization
import Testing

/// Lets only so many tests run at a time: each of them is several processes.
struct Crowd: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  private struct Door {
    var free = max(4, ProcessInfo.processInfo.activeProcessorCount)
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private static let door = Mutex(Door())

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    guard testCase != nil else { return try await function() }
    await withCheckedContinuation { continuation in
      let mayEnter = Self.door.withLock { door in
        if door.free > 0 {
          door.free -= 1
          return true
        }
        door.waiting.append(continuation)
        return false
      }
      if mayEnter { continuation.resume() }
    }
    defer {
      let next = Self.door.withLock { door in
        if door.waiting.isEmpty {
          door.free += 1
          return nil as CheckedContinuation<Void, Never>?
        }
        return door.waiting.removeFirst()
      }
      next?.resume()
    }
    try await function()
  }
}

extension Trait where Self == Crowd {
  /// Waits for its turn among the tests that start processes.
  static var crowded: Crowd { Crowd() }
}
