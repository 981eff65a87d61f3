import FanoutStore
import FanoutStoreTesting
import PostgresStore
import PostgresTesting
import SocialEvents
import Synchronization
import Testing

@Suite("Slices on PostgreSQL (SPEC 6)", .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct SliceTests {
  /// Newcomers commit their follow after a slice's facts were read and before its rows are written, so every range holds more
  /// followers than when it was drawn.
  @Test(
    "no transaction writes more feed rows than the slice size, however many followers come meanwhile",
    arguments: [Place.Layout.whole, .distributedInNameOnly])
  func transactions(layout: Place.Layout) throws {
    let sliceSize = 10
    let place = try Place(layout: layout)
    try place.execute(Self.recorder)
    defer { try? place.execute("DROP TABLE written; DROP FUNCTION record_written CASCADE") }
    let scenario = try Scenario({ _ in place.store }, feedLimit: 1000, ownPosts: true)
    try scenario.apply((0..<90).map { .follow("f\($0)", "b", at: 1) })
    try scenario.apply((0..<9).map { .unfollow("f\($0)", "b", at: 2) })

    let newcomers = Atomic(0)
    let hooks = StepHooks(reached: { step in
      guard step == .factsRead else { return }
      let first = newcomers.add(7, ordering: .relaxed).newValue
      let batch = Scenario.batch((first..<first + 7).map { .follow("n\($0)", "b", at: 3) })
      #expect(throws: Never.self) {
        _ = try place.store.commitFacts(batch)
        _ = try place.store.deriveViews(of: batch, sliceSize: sliceSize)
      }
    })
    let worker = try place.open(hooks: hooks)
    for (event, isShown) in [(Event.published("b", "p", at: 4), true), (.deleted("b", "p", at: 5), false)] {
      try place.execute("DELETE FROM written")
      let batch = Scenario.batch([event])
      _ = try place.store.commitFacts(batch)
      let derivation = try place.store.deriveViews(of: batch, sliceSize: sliceSize)
      #expect(derivation.slices.count > 8)
      for slice in derivation.slices { _ = try worker.derive(slice, sliceSize: sliceSize) }
      let largest = try place.integer("SELECT max(rows) FROM (SELECT sum(rows) AS rows FROM written GROUP BY tx) t")
      #expect(largest <= sliceSize && largest > sliceSize / 2)
      let present = try place.integer("SELECT count(*) FROM follows WHERE subject = fanout_key('b')")
      #expect(present == 81 + newcomers.load(ordering: .relaxed))
      // The author's own feed has it, too.
      let rows = try place.integer("SELECT count(*) FROM feed_row WHERE post = fanout_key('b', 'p')")
      #expect(rows == (isShown ? present + 1 : 0))
    }
  }

  /// Records how many rows of `feed` each statement adds or removes.
  private static let recorder = """
    CREATE TABLE written(tx bigint, rows bigint);
    CREATE FUNCTION record_written() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO written SELECT txid_current(), count(*) FROM changed; RETURN NULL; END $$;
    CREATE TRIGGER added AFTER INSERT ON feed_row REFERENCING NEW TABLE AS changed
      FOR EACH STATEMENT EXECUTE FUNCTION record_written();
    CREATE TRIGGER removed AFTER DELETE ON feed_row REFERENCING OLD TABLE AS changed
      FOR EACH STATEMENT EXECUTE FUNCTION record_written();
    """
}
