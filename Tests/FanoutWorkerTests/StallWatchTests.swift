import FanoutWorker
import Kafka
import Testing

@Suite("Partitions that fall silent (KAFKA.md)")
struct StallWatchTests {
  private let one = TopicPartition(topic: "t", partition: 1)
  private let two = TopicPartition(topic: "t", partition: 2)
  private let start = Instant.now
  private var watch = StallWatch(patience: 1000)

  private mutating func look(
    _ time: Int, _ positions: [TopicPartition: (next: Int64, end: Int64)]
  ) -> StallWatch.Remedy {
    let positions = positions.mapValues { StallWatch.Position(next: $0.next, end: $0.end) }
    return watch.look(at: positions, now: start.advanced(milliseconds: time))
  }

  @Test("are sought after a while, and after another one the client is replaced")
  mutating func escalates() {
    #expect(look(0, [one: (5, 9), two: (3, 3)]) == .none)
    #expect(look(999, [one: (5, 9), two: (3, 3)]) == .none)
    #expect(look(1000, [one: (5, 12), two: (3, 4)]) == .seek([one: 5]))
    #expect(watch.position(of: one) == 5)
    #expect(look(1999, [one: (5, 12), two: (3, 4)]) == .none)
    #expect(look(2000, [one: (5, 12), two: (3, 4)]) == .replaceClient([one]))
    #expect(look(3000, [two: (3, 4)]) == .replaceClient([two]))
  }

  @Test("are none while records come, however few, or at their end")
  mutating func moves() {
    for step in 0..<20 { #expect(look(step * 900, [one: (Int64(step), 100), two: (7, 7)]) == .none) }
  }

  @Test("are sought anew when they fall silent again")
  mutating func again() {
    _ = look(0, [one: (5, 9)])
    #expect(look(1000, [one: (5, 9)]) == .seek([one: 5]))
    #expect(look(2000, [one: (6, 9)]) == .none)
    #expect(look(3000, [one: (6, 9)]) == .seek([one: 6]))
    #expect(look(4000, [one: (9, 9)]) == .none)
    #expect(watch.position(of: one) == nil)
    _ = look(5000, [one: (9, 10)])
    #expect(look(6000, [one: (9, 10)]) == .seek([one: 9]))
  }

  @Test("are forgotten when they are given up, paused, or the brokers were away")
  mutating func forgotten() {
    _ = look(0, [one: (5, 9), two: (1, 2)])
    _ = look(500, [two: (1, 2)])
    watch.forget(nil)
    #expect(look(1000, [one: (5, 9), two: (1, 2)]) == .none)
    watch.forget([two])
    #expect(look(2000, [one: (5, 9), two: (1, 2)]) == .seek([one: 5]))
    #expect(look(3000, [one: (5, 9), two: (2, 2)]) == .replaceClient([one]))
  }
}
