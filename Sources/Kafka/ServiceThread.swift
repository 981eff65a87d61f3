internal import Glibc

/// A thread for a C call that blocks: never one of the cooperative pool's two.
package enum ServiceThread {
  private final class Work {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// Runs `body` on a new detached thread. False when the system has no thread left; `body` is not run then.
  package static func run(_ body: @escaping @Sendable () -> Void) -> Bool {
    let work = unsafe Unmanaged.passRetained(Work(body))
    var thread = pthread_t()
    let failed = unsafe pthread_create(
      &thread, nil,
      { argument in
        if let argument = unsafe argument { unsafe Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body() }
        return nil
      }, work.toOpaque())
    if failed != 0 {
      unsafe work.release()
      return false
    }
    pthread_detach(thread)
    return true
  }
}
