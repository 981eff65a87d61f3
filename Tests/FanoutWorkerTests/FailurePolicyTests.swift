import FanoutWorker
import Testing

@Suite("What is done about failures (SPEC 7)")
struct FailurePolicyTests {
  private static let now = Instant.now
  private static func policy(random: Double, isPatient: Bool = true) -> FailurePolicy {
    FailurePolicy(isPatient: isPatient, now: { now }, random: { random })
  }
  private static func milliseconds(_ decision: FailurePolicy.Decision) -> Int? {
    guard case .retry(let time, _) = decision else { return nil }
    return Int((time.seconds(since: now) * 1000).rounded())
  }

  @Test("what may pass is tried again without limit, never dead-lettered, at growing intervals", arguments: [1, 1000])
  func passing(records: Int) {
    var last = 0
    for failures in 1...10_000 {
      let decision = Self.policy(random: 1).decide(.passing, records: records, failures: failures)
      let wait = Self.milliseconds(decision)
      #expect(wait == min(10_000, failures > 20 ? 10_000 : 50 << (failures - 1)))
      #expect(wait ?? 0 >= last)
      last = wait ?? 0
    }
  }

  @Test("waits are spread over half of their length", arguments: [(0.0, 25), (0.5, 37), (1, 50), (-7, 25), (9, 50)])
  func jitter(random: Double, wait: Int) {
    #expect(Self.milliseconds(Self.policy(random: random).decide(.passing, records: 1, failures: 1)) == wait)
  }

  @Test("fetching pauses when a try has failed again, and not for what the store refuses")
  func pause() {
    func isPaused(_ failure: FailurePolicy.Failure, _ failures: Int) -> Bool? {
      guard case .retry(_, let isPaused) = Self.policy(random: 0).decide(failure, records: 1, failures: failures) else {
        return nil
      }
      return isPaused
    }
    #expect(isPaused(.passing, 1) == false)
    #expect(isPaused(.passing, 2) == true)
    #expect(isPaused(.refused, 1) == true)
    #expect(isPaused(.refusedValue, 1) == false)
    #expect(isPaused(.refusedValue, 2) == false)
  }

  @Test("a batch with a refused value is split, down to one; one is tried three times")
  func refusedValue() {
    let policy = Self.policy(random: 0)
    for records in [2, 3, 1000] {
      for failures in 1...5 {
        #expect(policy.decide(.refusedValue, records: records, failures: failures) == .split(into: 2))
      }
    }
    #expect(Self.milliseconds(policy.decide(.refusedValue, records: 1, failures: 1)) == 25)
    #expect(Self.milliseconds(policy.decide(.refusedValue, records: 1, failures: 2)) == 50)
    #expect(policy.decide(.refusedValue, records: 1, failures: 3) == .deadLetter)
  }

  @Test("a batch that takes too long is cut into many parts, down to one, which is tried without limit")
  func overdue() {
    let policy = Self.policy(random: 1)
    for records in [2, 3, 1000] { #expect(policy.decide(.overdue, records: records, failures: 1) == .split(into: 16)) }
    #expect(Self.milliseconds(policy.decide(.overdue, records: 1, failures: 1)) == 50)
    #expect(Self.milliseconds(policy.decide(.overdue, records: 1, failures: 10_000)) == 10_000)
  }

  @Test("what somebody has to mend is waited for like what mends itself, but not by who waits for the end")
  func refused() {
    for failures in [1, 10_000] {
      let decision = Self.policy(random: 1).decide(.refused, records: 1000, failures: failures)
      #expect(Self.milliseconds(decision) == (failures == 1 ? 50 : 10_000))
      #expect(Self.policy(random: 1, isPatient: false).decide(.refused, records: 1000, failures: failures) == .giveUp)
    }
  }

  @Test("what trying again can't change ends the worker at once, and loses nothing")
  func lasting() {
    #expect(Self.policy(random: 0).decide(.lasting, records: 1000, failures: 1) == .giveUp)
  }
}
