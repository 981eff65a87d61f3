import Kafka
import SocialEvents
import Synchronization

/// Emits follow events, each about an edge of its own, until told to stop: so that whatever a test does, there is work.
final class Load: Sendable {
  private struct State {
    var isStopped = false
    var sent = 0
  }

  /// Shared with the task, which must not keep the load going once nobody holds it any more.
  private final class Progress: Sendable {
    let state = Mutex(State())
  }

  private let progress = Progress()
  private let task: Task<Void, any Error>

  init(on deployment: Deployment) throws {
    let producer = try Producer(deployment.client)
    task = Task { [progress] in try await Self.run(producer, on: deployment, progress) }
  }

  deinit { progress.state.withLock { $0.isStopped = true } }

  private static func run(_ producer: Producer, on deployment: Deployment, _ progress: Progress) async throws {
    let encoder = EventEncoder()
    defer { producer.close(timeoutMilliseconds: 1000) }
    while !progress.state.withLock(\.isStopped) {
      let start = progress.state.withLock(\.sent)
      var records: [ProducerRecord] = []
      for number in start..<start + 40 {
        let edge = try Edge.follow(actor: UserID("u\(number)"), target: UserID("t\(number % 7)"))
        let event = Event(
          id: try EventID("e\(number)"), source: "/load", time: Timestamp(microseconds: 1_700_000_000_000_000),
          assertion: .present(edge, silent: false, extra: nil))
        records.append(try encoder.record(of: event, isStructured: false, topics: deployment.topics))
      }
      try producer.sendAndWait(records, timeoutMilliseconds: 60_000)
      progress.state.withLock { $0.sent += records.count }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  /// How many events have been acknowledged so far.
  var sent: Int { progress.state.withLock(\.sent) }

  /// - Returns: how many events there are in all.
  @discardableResult
  func stop() async throws -> Int {
    progress.state.withLock { $0.isStopped = true }
    try await task.value
    return sent
  }

  /// The edges of the dump (SPEC 9) when all has been applied.
  func expectedEdges() -> Set<String> {
    Set((0..<sent).map { Lines.followEdge("u\($0)", "t\($0 % 7)") })
  }
}
