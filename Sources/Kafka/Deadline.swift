/// A moment to give up at, in the milliseconds that librdkafka's calls take.
struct Deadline {
  private let end: ContinuousClock.Instant

  init(milliseconds: Int) { end = .now + .milliseconds(max(milliseconds, 0)) }

  /// Milliseconds left, rounded up, zero when it has passed.
  var remaining: Int32 {
    let left = end - .now
    guard left > .zero else { return 0 }
    let (seconds, attoseconds) = left.components
    return Int32(clamping: seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
  }

  var hasPassed: Bool { end <= .now }
}

/// A wait in the form librdkafka takes it, where a negative one would be without end.
func cMilliseconds(_ milliseconds: Int) -> Int32 { Int32(clamping: max(milliseconds, 0)) }
