internal import FanoutWorker
private import Glibc
internal import Kafka

/// SIGTERM and SIGINT as a call: the first asks to stop, a further one ends the program at once.
enum Signals {
  /// A second signal so soon after the first is the same request, in milliseconds: a terminal's interrupt goes to a wrapper
  /// and to the program, and the wrapper passes its own on; `timeout` signals the program and then its process group.
  private static let sameRequest = 1000

  /// Must be called before any other thread is started, so that all inherit the mask.
  static func onTermination(_ stop: @escaping @Sendable () -> Void) {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    unsafe sigaddset(&set, SIGTERM)
    unsafe sigaddset(&set, SIGINT)
    unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    let waiting = set
    let started = ServiceThread.run {
      var set = waiting
      var received: Int32 = 0
      unsafe sigwait(&set, &received)
      stop()
      let end = Instant.after(milliseconds: sameRequest)
      repeat { unsafe sigwait(&set, &received) } while Instant.now < end
      complain("stopped at once, as asked for twice")
      _exit(ExitCode.failed.rawValue)
    }
    if !started { unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil) }
  }

  /// A socket that the other side has closed is an error to handle, not a reason to die.
  static func ignoreBrokenPipes() {
    signal(SIGPIPE, SIG_IGN)
  }
}
