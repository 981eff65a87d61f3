import FanoutStore
import FanoutStoreTesting
import Foundation
import PostgresStore
import PostgresTesting
import SocialEvents
import Testing

/// Two writers about the same users: one is stopped at each boundary of its steps in turn (facts committed; facts read;
/// a view written and not committed; committed and not checked) while the other does all that it has to do.
@Suite("Forced interleavings on PostgreSQL", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct InterleavingTests {
  /// What a writer does about the follower "a" and the post "b/p".
  enum Action: CaseIterable {
    case follow, unfollow, publish, republish, republishBack, delete, sliceDelivery, sliceRetraction, like, unlike, seen

    func event(at time: Int64) -> Event {
      switch self {
      case .follow: .follow("a", "b", at: time)
      case .unfollow: .unfollow("a", "b", at: time)
      case .publish, .sliceDelivery: .published("b", "p", at: time, publishedAt: 50)
      case .republish: .published("b", "p", at: time, publishedAt: 70)
      case .republishBack: .published("b", "p", at: time, publishedAt: 30)
      case .delete, .sliceRetraction: .deleted("b", "p", at: time)
      case .like: .like("a", "b", "p", at: time)
      case .unlike: .unlike("a", "b", "p", at: time)
      case .seen: .seen("b", upTo: time)
      }
    }

    var sliceSize: Int { self == .sliceDelivery || self == .sliceRetraction ? 1 : 5000 }
  }

  /// What is there before: "a" does not follow "b" yet, follows, or does not any more; the post has been published or not; and
  /// other posts, so that the feed is trimmed and may want refilling.
  static let beginnings: [[Event]] = {
    let others =
      (0..<4).map { Event.published("c", "q\($0)", at: 1, publishedAt: 10 * Int64($0)) }
      + (0..<6).map { Event.published("b", "o\($0)", at: 1, publishedAt: 40 + Int64($0)) }
      + [.follow("a", "c", at: 1), .follow("d", "b", at: 1), .like("a", "b", "p", at: 1)]
    let published = Event.published("b", "p", at: 2, publishedAt: 50)
    return [
      others, others + [.follow("a", "b", at: 2), published],
      others + [.follow("a", "b", at: 2), .unfollow("a", "b", at: 3), published],
      others + [.follow("a", "b", at: 2), published, .published("b", "p", at: 3, publishedAt: 30)],
    ]
  }()

  @Test("each pair at each boundary, whichever is newer", arguments: Action.allCases)
  func pairs(stopped: Action) async throws {
    try await Self.run(stopped, with: Action.allCases, StepHooks()) { Issue.record("\($0)") }
  }

  static let unsafe: [(stopped: Action, other: Action)] = [
    (.unfollow, .follow), (.follow, .unfollow), (.follow, .delete), (.publish, .unfollow),
    (.sliceDelivery, .sliceRetraction), (.republish, .republishBack), (.publish, .republish),
  ]

  /// Without step 3 of SPEC 6 each of these goes wrong, at some boundary and from some beginning.
  @Test(
    "without the check after the commit the views come out wrong",
    arguments: zip(Self.unsafe.map(\.stopped), Self.unsafe.map(\.other)))
  func mutation(stopped: Action, other: Action) async throws {
    var wrong: [String] = []
    try await Self.run(stopped, with: [other], StepHooks(checksAfterCommit: false)) { wrong.append($0) }
    #expect(!wrong.isEmpty)
  }

  /// Runs all cases of an action that is stopped.
  static func run(
    _ stopped: Action, with others: [Action], _ hooks: StepHooks, layout: Place.Layout = .whole,
    report: (String) -> Void
  ) async throws {
    let gate = Gate()
    let settings = StoreSettings(feedLimit: 2, includesOwnPosts: false)
    let place = try Place(settings: settings, layout: layout)
    var stopping = hooks
    stopping.reached = gate.pass
    let first = try place.open(hooks: stopping)
    let second = hooks.checksAfterCommit ? place.store : try place.open(hooks: hooks)
    for (index, beginning) in Self.beginnings.enumerated() {
      for other in others {
        for times in [(Int64(10), Int64(11)), (11, 10)] {
          let events = (stopped.event(at: times.0), other.event(at: times.1))
          var boundary = 1
          while true {
            try place.empty()
            try apply(beginning, second, sliceSize: 5000)
            let hasStopped = try await run(
              gate, boundary, { try apply([events.0], first, sliceSize: stopped.sliceSize) },
              { try apply([events.1], second, sliceSize: other.sliceSize) })
            let records = (beginning + [events.0, events.1]).map { Record($0, recorded: nil) }
            let expected = Oracle(records, settings: settings).lines()
            let what = "\(stopped) at \(times.0) stopped at boundary \(boundary), \(other) at \(times.1), from \(index)"
            if let difference = DumpLines.difference(try DumpLines.of(second), from: expected) {
              report("\(what):\n\(difference)")
            } else if try place.integer(Place.leftovers) != 0 {
              report("\(what): rows left that nobody is shown")
            }
            if !hasStopped { break }
            boundary += 1
          }
        }
      }
    }
  }

  private static func apply(_ events: [Event], _ store: any Store, sliceSize: Int) throws {
    let batch = Scenario.batch(events)
    _ = try store.commitFacts(batch)
    for slice in try store.deriveViews(of: batch, sliceSize: sliceSize).slices {
      _ = try store.derive(slice, sliceSize: sliceSize)
    }
  }

  /// Runs `first` to its boundary, then `second` to its end, or until it waits for a lock that `first` holds, then the rest.
  /// - Returns: whether `first` has come to the boundary.
  private static func run(
    _ gate: Gate, _ boundary: Int, _ first: @escaping @Sendable () throws -> Void,
    _ second: @escaping @Sendable () throws -> Void
  ) async throws -> Bool {
    gate.close(at: boundary)
    async let one: Void = onThread {
      defer { gate.finish() }
      try first()
    }
    async let two: Bool = onThread {
      let hasStopped = gate.waitUntilStopped()
      let done = DispatchSemaphore(value: 0)
      let opener = Thread {
        _ = done.wait(timeout: .now() + .milliseconds(60))
        gate.open()
      }
      opener.start()
      defer { done.signal() }
      try second()
      return hasStopped
    }
    _ = try await one
    return try await two
  }
}
