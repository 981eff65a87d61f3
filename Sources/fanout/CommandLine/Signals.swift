internal import FanoutWorker
private import Glibc
internal import Kafka

/// SIGTERM and SIGINT as a call: the first asks to stop, the second ends the program at once.
enum Signals {
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
      unsafe sigwait(&set, &received)
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
