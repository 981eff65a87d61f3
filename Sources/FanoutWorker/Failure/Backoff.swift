/// Waits between tries that grow exponentially up to a limit, with jitter so that workers don't return all at once.
package struct Backoff {
  private let limit: Double
  private var next: Double

  package init(firstMilliseconds: Double = 50, limitMilliseconds: Double = 10_000) {
    next = firstMilliseconds
    limit = limitMilliseconds
  }

  /// The next wait: between half and all of the grown time.
  package mutating func nextMilliseconds() -> Int {
    let now = next
    next = min(limit, next * 2)
    return Int(Double.random(in: now / 2...now))
  }
}
