import Foundation

/// Runs what blocks on a thread of its own, as the cooperative pool has only as many as there are cores.
package func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
  }
}
