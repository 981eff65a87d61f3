/// What is done about failures (SPEC 7): a function of what failed and how often. It does nothing itself; the worker performs what it
/// says. What may pass by itself never makes a dead letter, and a record that the store refuses holds up no other.
package struct FailurePolicy: Sendable {
  package enum Failure: Hashable, Sendable {
    /// Store or brokers are away, busy or full.
    case passing
    /// It took longer than the store lets anything take.
    case overdue
    /// The store refuses a value among the records at hand.
    case refusedValue
    /// The store refuses whatever the records are, until somebody does something: grants a privilege, say.
    case refused
    /// Trying again would change nothing.
    case lasting
  }

  package enum Decision: Hashable, Sendable {
    /// The same once more. Meanwhile nothing is fetched if `isFetchingPaused`; the worker stays in its group.
    case retry(at: Instant, isFetchingPaused: Bool)
    /// The records by themselves, in so many parts.
    case split(into: Int)
    case deadLetter
    /// The worker ends, with all that is not acknowledged left to others or to its next start.
    case giveUp
  }

  /// The wait after the first failure, in milliseconds. It doubles with each further one.
  private static let firstWait = 50.0
  private static let longestWait = 10_000.0
  /// How often a record that the store refuses is tried alone.
  package static let triesAlone = 3
  /// What takes too long is cut into this many parts. Each try costs all the time that one may take, so halving would take for ever.
  private static let partsOfOverdue = 16
  /// A failure that is over at the next try is no reason to stop fetching.
  private static let failuresBeforePause = 2

  private let isPatient: Bool
  private let now: @Sendable () -> Instant
  private let random: @Sendable () -> Double

  /// - Parameters:
  ///   - isPatient: whether to wait for somebody who does something; whoever waits for the end of the work would rather know.
  ///   - now: the clock.
  ///   - random: numbers from 0 to 1, so that workers which failed together don't return together.
  package init(
    isPatient: Bool,
    now: @escaping @Sendable () -> Instant = { .now },
    random: @escaping @Sendable () -> Double = { .random(in: 0...1) }
  ) {
    self.isPatient = isPatient
    self.now = now
    self.random = random
  }

  /// - Parameters:
  ///   - records: how many the step was about.
  ///   - failures: how often it has failed in a row, this time included.
  package func decide(_ failure: Failure, records: Int, failures: Int) -> Decision {
    switch failure {
    case .passing: retry(failures, isFetchingPaused: failures >= Self.failuresBeforePause)
    case .overdue where records > 1: .split(into: Self.partsOfOverdue)
    case .overdue: retry(failures, isFetchingPaused: true)
    case .refusedValue where records > 1: .split(into: 2)
    case .refusedValue: failures < Self.triesAlone ? retry(failures, isFetchingPaused: false) : .deadLetter
    case .refused where isPatient: retry(failures, isFetchingPaused: true)
    case .refused, .lasting: .giveUp
    }
  }

  private func retry(_ failures: Int, isFetchingPaused: Bool) -> Decision {
    var wait = Self.firstWait
    for _ in 1..<max(1, failures) where wait < Self.longestWait { wait *= 2 }
    wait = min(wait, Self.longestWait)
    // Between half and all of it.
    let milliseconds = Int(wait / 2 * (1 + min(1, max(0, random()))))
    return .retry(at: now().advanced(milliseconds: milliseconds), isFetchingPaused: isFetchingPaused)
  }
}
