internal import Glibc

/// State that threads share and wait upon: a mutex with a condition variable.
///
/// `Synchronization.Mutex` has nothing to wait on, and the worker's threads must wait for each other without polling.
@safe
final class Monitor<State>: Sendable {
  // Reached only while the mutex is held.
  private nonisolated(unsafe) var state: State
  private nonisolated(unsafe) let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private nonisolated(unsafe) let changed: UnsafeMutablePointer<pthread_cond_t>

  init(_ state: sending State) {
    unsafe self.state = state
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe pthread_mutex_init(mutex, nil)
    unsafe changed = .allocate(capacity: 1)
    unsafe changed.initialize(to: pthread_cond_t())
    // The monotonic clock: setting the machine's time must not lengthen a wait.
    var attributes = pthread_condattr_t()
    unsafe pthread_condattr_init(&attributes)
    unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    unsafe pthread_cond_init(changed, &attributes)
    unsafe pthread_condattr_destroy(&attributes)
  }

  deinit {
    unsafe pthread_cond_destroy(changed)
    unsafe pthread_mutex_destroy(mutex)
    unsafe changed.deallocate()
    unsafe mutex.deallocate()
  }

  /// Runs `body` alone, then wakes the waiting threads.
  func withLock<T>(_ body: (inout State) -> T) -> T {
    unsafe pthread_mutex_lock(mutex)
    defer {
      unsafe pthread_cond_broadcast(changed)
      unsafe pthread_mutex_unlock(mutex)
    }
    return unsafe body(&state)
  }

  /// Waits until `body` returns a value, or the deadline has passed; nil waits without limit.
  func wait<T>(until deadline: Instant?, for body: (inout State) -> T?) -> T? {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    while true {
      if let result = unsafe body(&state) {
        unsafe pthread_cond_broadcast(changed)
        return result
      }
      guard let deadline else {
        unsafe pthread_cond_wait(changed, mutex)
        continue
      }
      if deadline <= Instant.now { return nil }
      var time = deadline.timespec
      unsafe pthread_cond_timedwait(changed, mutex, &time)
    }
  }
}
