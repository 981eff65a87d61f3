import FanoutStore
import FanoutStoreTesting
import Foundation
import Kafka
import SocialEvents

/// Made-up histories, and what an oracle that shares no code with the product says of them.
///
/// Small histories in which everything collides are put together to one of some thousand records, which is published in a random order,
/// partly twice, partly in each of the two modes of CloudEvents (SPEC 3).
enum Generated {
  static let workloads = [
    workload(seeds: 1...40, settings: StoreSettings(feedLimit: 1000)),
    workload(seeds: 41...80, settings: StoreSettings(feedLimit: 3, includesOwnPosts: false)),
  ]

  private static func workload(seeds: ClosedRange<UInt64>, settings: StoreSettings) -> Workload {
    var records: [Record] = []
    for seed in seeds {
      var generator = HistoryGenerator(seed: seed)
      records += generator.history().records
    }
    return workload(
      "generated histories \(seeds), feed limit \(settings.feedLimit)", records, settings: settings,
      seed: seeds.lowerBound)
  }

  /// - Parameter seed: of the order in which the records are published.
  static func workload(_ name: String, _ records: [Record], settings: StoreSettings, seed: UInt64) -> Workload {
    // The log keeps milliseconds, refuses times that are yet to come, and knows no record without a time.
    let latest = Int64(Date().timeIntervalSince1970) * 1000 - 3_600_000
    let inOrder = records.map { record in
      let time = (record.recorded ?? record.event.time).microseconds / 1000
      return Record(record.event, recorded: Timestamp(microseconds: min(max(time, 1), latest) * 1000))
    }
    let expected = Oracle(inOrder, settings: settings).lines()
    return Workload(
      testDescription: name,
      environment: [
        "FANOUT_FEED_LIMIT": "\(settings.feedLimit)", "FANOUT_OWN_POSTS": settings.includesOwnPosts ? "on" : "off",
      ],
      digest: sha256(ofLines: expected), registers: Set(records.map(\.event.assertion.key)).count, sliceSize: 2
    ) { deployment in
      var random = SeededGenerator(seed: seed)
      var records = inOrder + inOrder.filter { _ in Int.random(in: 0..<5, using: &random) == 0 }
      records.shuffle(using: &random)
      let encoder = EventEncoder()
      let producer = try Producer(deployment.client, mode: .bulk)
      defer { producer.close(timeoutMilliseconds: 1000) }
      try producer.sendAndWait(
        try records.map { record in
          try encoder.record(
            of: record.event, isStructured: Int.random(in: 0..<3, using: &random) == 0,
            timestamp: record.recorded, topics: deployment.topics)
        }, timeoutMilliseconds: 60_000)
    }
  }
}

extension EventEncoder {
  /// A record as services write it (SPEC 3).
  func record(
    of event: Event, isStructured: Bool, timestamp: Timestamp? = nil, topics: Topics
  ) throws -> ProducerRecord {
    var value: [UInt8] = []
    let headers: [Header]
    if isStructured {
      try appendStructured(event, to: &value)
      headers = [Header("content-type", "application/cloudevents+json")]
    } else {
      try appendData(of: event, to: &value)
      headers = self.headers(of: event).map { Header($0.name, $0.value) }
    }
    return ProducerRecord(
      topic: topics.name(of: event.type.family), key: Array(event.assertion.key.utf8), value: value, headers: headers,
      timestamp: timestamp.map { $0.microseconds / 1000 })
  }
}
