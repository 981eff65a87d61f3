/// Waits between tries that grow exponentially up to a limit, with jitter so that workers don't return all at once.
struct Backoff {
  private let limit: Double
  private var next: Double

  init(firstMilliseconds: Double = 50, limitMilliseconds: Double = 10_000) {
    next = firstMilliseconds
    limit = limitMilliseconds
  }

  /// The next wait: between half and all of the grown time.
  mutating func nextMilliseconds() -> Int {
    let now = next
    next = min(limit, next * 2)
    return Int(Double.random(in: now / 2...now))
  }
}
