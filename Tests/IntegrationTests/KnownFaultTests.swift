import FanoutStore
import Foundation
import Kafka
import PostgresTesting
import SQLiteStore
import SocialEvents
import Testing

/// Faults that users of other systems reported, each as a story: events in the order in which they are emitted, and all that
/// a reader sees in the end.
struct Story: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let events: [String]
  /// Words of a `show` command, and the fields of each line that must come out of it; times are left out.
  let shown: [(list: [String], lines: [String])]

  static let all = [
    Story(
      testDescription: "the same like notifies once (mastodon#165, lemmy#6516)",
      events: (0..<5).map { Lines.on("like", "ann", "bob", "p", id: "\($0)", time: "10:0\($0)") },
      shown: [(["feedback", "bob"], ["like ann p new"]), (["likers", "bob", "p"], ["ann"])]),
    Story(
      testDescription: "follow and unfollow in a loop leave one entry, or none (mastodon#4118, gotosocial#51)",
      events: (0..<9).flatMap {
        [
          Lines.follow("ann", "bob", id: "f\($0)", time: "10:\(10 + 2 * $0)"),
          Lines.unfollow("ann", "bob", id: "u\($0)", time: "10:\(11 + 2 * $0)"),
          Lines.unfollow("carl", "bob", id: "v\($0)", time: "10:\(10 + 2 * $0)"),
          Lines.follow("carl", "bob", id: "g\($0)", time: "10:\(11 + 2 * $0)"),
        ]
      }, shown: [(["feedback", "bob"], ["follow carl new"]), (["followers", "bob"], ["carl"])]),
    Story(
      testDescription: "an undo that comes before what it undoes (mastodon#7240, forem#75)",
      events: [
        Lines.on("unlike", "ann", "bob", "p", id: "2", time: "10:01"),
        Lines.on("like", "ann", "bob", "p", id: "1", time: "10:00"),
      ], shown: [(["feedback", "bob"], []), (["liked", "ann"], [])]),
    Story(
      testDescription: "a deletion that comes before everything about the post (mastodon#9234, pixelfed#5290)",
      events: [
        Lines.delete("bob", "p", id: "1", time: "09:00"), Lines.follow("ann", "bob", id: "2"),
        Lines.post("bob", "p", id: "3", time: "11:00"), Lines.on("like", "ann", "bob", "p", id: "4", time: "12:00"),
      ],
      shown: [
        (["feed", "ann"], []), (["feed", "bob"], []), (["feedback", "bob"], ["follow ann new"]),
        (["likers", "bob", "p"], []), (["liked", "ann"], []),
      ]),
    Story(
      testDescription: "posts of somebody unfollowed go, and late ones don't come back (takahe#366, mastodon#22)",
      events: [
        Lines.follow("ann", "bob", id: "1"), Lines.post("bob", "p", id: "2"),
        Lines.unfollow("ann", "bob", id: "3", time: "10:01"), Lines.post("bob", "q", id: "4", time: "09:00"),
        Lines.follow("ann", "bob", id: "5", time: "09:30"),
      ], shown: [(["feed", "ann"], []), (["feed", "bob"], ["bob p", "bob q"])]),
    Story(
      testDescription: "a late post stands at its own time, not on top (mastodon#545, pixelfed#4949)",
      events: [
        Lines.follow("ann", "bob", id: "1"), Lines.post("bob", "new", id: "2", time: "12:00"),
        Lines.post("bob", "old", id: "3", time: "08:00"), Lines.post("bob", "middle", id: "4", time: "10:00"),
      ], shown: [(["feed", "ann"], ["bob new", "bob middle", "bob old"])]),
    Story(
      testDescription: "a clock in 2099 neither sticks on top nor makes a like for ever (gotosocial#233)",
      events: [
        Lines.follow("ann", "bob", id: "1"), Lines.post("bob", "p", id: "2", time: "2099-01-01T00:00:00Z"),
        Lines.on("like", "ann", "bob", "p", id: "3", time: "2099-01-01T00:00:00Z"),
        // Emitted later, so the log knows a later time for it: id 4 decides where the milliseconds are the same.
        Lines.on("unlike", "ann", "bob", "p", id: "4", time: "2099-01-01T00:00:00Z"),
      ],
      shown: [(["feed", "ann"], ["bob p"]), (["likers", "bob", "p"], []), (["feedback", "bob"], ["follow ann new"])]),
    Story(
      testDescription: "the unread are those of the list, own likes are none (thunder#683, social-app#1201)",
      events: [
        Lines.on("like", "bob", "bob", "p", id: "1"), Lines.on("like", "ann", "bob", "p", id: "2"),
        Lines.on("like", "carl", "bob", "p", id: "3", time: "11:00"),
        Lines.event("feedback-seen", #"{"user":"bob","upTo":"2024-05-01T10:00:00Z"}"#, id: "4", time: "10:30"),
        Lines.event(
          "like", #"{"actor":"dora","author":"bob","post":"p","silent":true}"#, id: "5", time: "12:00"),
      ],
      shown: [
        (["feedback", "bob"], ["like carl p new", "like ann p seen"]),
        (["likers", "bob", "p"], ["ann", "bob", "carl", "dora"]),
      ]),
  ]
}

@Suite("Faults that users of other systems reported", .crowded)
struct KnownFaultTests {
  @Test("stories", arguments: Story.all)
  func story(_ story: Story) async throws {
    let deployment = try await Deployment.start(on: .embedded)
    // One after the other, each applied before the next comes.
    let worker = try deployment.startWorker()
    try await worker.isAssigned()
    for event in story.events { try await deployment.emit(lines: event + "\n") }
    try await deployment.allAcknowledged(by: [worker])
    try await worker.stopInOrder()
    for (list, lines) in story.shown {
      let result = try await deployment.run(["show"] + list)
      var actual = result.lines.map { line in
        line.split(separator: "\t").filter { !$0.hasPrefix("20") }.joined(separator: " ")
      }
      // Lists of relations have no meaningful order.
      if !list[0].hasPrefix("feed") { actual.sort() }
      #expect(actual == lines, "\(list)")
    }
  }

  @Test(
    "deleted while its slices wait: hidden at once, and in no feed afterwards (mastodon#16238, Stream-Framework#96)",
    arguments: BrokerKind.available)
  func deletedWhileSliced(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(
      on: kind, environment: ["FANOUT_SLICE_SIZE": "1", "FANOUT_MAX_IN_FLIGHT": "3"])
    try await deployment.emit(lines: (0..<300).map { Lines.follow("f\($0)", "bob", id: "\($0)") }.joinedLines)
    try await deployment.catchUp(environment: ["FANOUT_MAX_IN_FLIGHT": "60000"])
    let worker = try deployment.startWorker()
    try await worker.isAssigned()
    try await deployment.emit(lines: Lines.post("bob", "p", id: "p") + "\n")
    try await eventually("the first followers have the post", else: worker.report) { try feedRows(deployment) > 2 }
    try await deployment.emit(lines: Lines.delete("bob", "p", id: "d") + "\n")
    try await eventually("the deletion is known", else: worker.report) {
      try number("SELECT count(*) FROM post WHERE deleted = 1", deployment) == 1
    }
    let store = try SQLiteStore(path: deployment.store.path, access: .readOnly, settings: nil)
    var shown = 0
    try store.export { if case .feed = $0 { shown += 1 } }
    #expect(shown == 0, "no reader is shown it any more, whatever is still to be cleaned up")
    try await deployment.allAcknowledged(by: [worker])
    let report = try await worker.stopInOrder()
    #expect(report.slicesHandedOver > 300, "the delivery and the retraction were both sliced")
    #expect(try feedRows(deployment) == 0, "and they have left nothing behind")
  }

  @Test(
    "killed while slices wait: the next worker does the rest, for every follower (ActivityPub PR 233)",
    arguments: BrokerKind.available)
  func killedWhileSliced(kind: BrokerKind) async throws {
    let deployment = try await Deployment.start(
      on: kind, environment: ["FANOUT_SLICE_SIZE": "1", "FANOUT_MAX_IN_FLIGHT": "3"])
    try await deployment.emit(lines: (0..<300).map { Lines.follow("f\($0)", "bob", id: "\($0)") }.joinedLines)
    try await deployment.catchUp(environment: ["FANOUT_MAX_IN_FLIGHT": "60000"])
    // A machine that is busy elsewhere may let all slices be done before the kill: then with another post.
    var posts = 0
    var wasInTheMiddle = false
    while !wasInTheMiddle && posts < 10 {
      let before = try feedRows(deployment)
      let worker = try deployment.startWorker()
      try await worker.isAssigned()
      posts += 1
      try await deployment.emit(lines: Lines.post("bob", "p\(posts)", id: "p\(posts)") + "\n")
      // On a thread of its own: where other tests hold those of the pool, all would be done before the next look.
      wasInTheMiddle = try await onThread {
        let deadline = ContinuousClock.now + .seconds(Patience.seconds)
        while try feedRows(deployment) <= before + 2 {
          if ContinuousClock.now > deadline { throw TestFailure("no follower has the post. \(worker.report)") }
          usleep(1000)
        }
        worker.kill()
        return try feedRows(deployment) < before + 301
      }
    }
    #expect(wasInTheMiddle, "it was killed in the middle")
    // Followers come and go meanwhile.
    try await deployment.emit(
      lines: [Lines.unfollow("f0", "bob", id: "u", time: "11:00"), Lines.follow("late", "bob", id: "l")].joinedLines)
    try await deployment.catchUp()
    let feeds = try await deployment.dump().filter { $0.hasPrefix(#"{"view":"feed","#) }
    #expect(feeds.count == 301 * posts, "299 followers of before, the late one, and bob himself")
  }

  private func feedRows(_ deployment: Deployment) throws -> Int {
    try number("SELECT count(*) FROM feed", deployment)
  }

  private func number(_ sql: String, _ deployment: Deployment) throws -> Int {
    let database = try Connection(path: deployment.store.path, access: .readOnly)
    let statement = try database.statement(sql)
    return try statement.first { Int(statement.integer(0)) } ?? 0
  }
}
