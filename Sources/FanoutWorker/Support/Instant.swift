internal import Glibc

/// A moment of the machine's monotonic clock.
package struct Instant: Hashable, Comparable, Sendable {
  /// Nanoseconds since some moment in the past.
  let nanoseconds: Int64

  package static var now: Instant {
    var time = Glibc.timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  package static func after(milliseconds: Int) -> Instant { now.advanced(milliseconds: milliseconds) }

  package func advanced(milliseconds: Int) -> Instant {
    Instant(nanoseconds: nanoseconds + Int64(milliseconds) * 1_000_000)
  }

  package static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

  /// Seconds from `start` to this moment.
  package func seconds(since start: Instant) -> Double { Double(nanoseconds - start.nanoseconds) / 1e9 }

  func microseconds(since start: Instant) -> Int64 { (nanoseconds - start.nanoseconds) / 1000 }

  /// Whole milliseconds from now to this moment, rounded up; 0 if it has passed.
  package var millisecondsFromNow: Int { max(0, Int((nanoseconds - Instant.now.nanoseconds + 999_999) / 1_000_000)) }

  var timespec: Glibc.timespec {
    Glibc.timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
  }
}

/// The time of day, in microseconds since 1970.
package func microsecondsSince1970() -> Int64 {
  var time = timespec()
  unsafe clock_gettime(CLOCK_REALTIME, &time)
  return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
}

/// Blocks the calling thread.
package func pause(milliseconds: Int) {
  var time = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
  unsafe nanosleep(&time, nil)
}
