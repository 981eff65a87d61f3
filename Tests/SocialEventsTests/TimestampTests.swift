import SocialEvents
import Testing

struct TimestampTests {
  @Test(
    "RFC 3339 times are read to the microsecond (SPEC 2)",
    arguments: [
      ("1970-01-01T00:00:00Z", 0),
      ("1970-01-01T00:00:00.000001Z", 1),
      ("2012-07-04T00:00:00Z", 1_341_360_000_000_000),
      ("2012-07-04t00:00:00z", 1_341_360_000_000_000),
      ("2012-07-04T02:00:00+02:00", 1_341_360_000_000_000),
      ("2012-07-03T18:15:00-05:45", 1_341_360_000_000_000),
      ("2012-07-04T23:59:00+23:59", 1_341_360_000_000_000),
      ("2012-07-04T00:00:00-00:00", 1_341_360_000_000_000),
      ("2012-07-04T00:00:00.1Z", 1_341_360_000_100_000),
      ("2012-07-04T00:00:00.123456Z", 1_341_360_000_123_456),
      ("2012-07-04T00:00:00.123456999Z", 1_341_360_000_123_456),
      ("2012-07-04T00:00:00.000000999+00:00", 1_341_360_000_000_000),
      ("1969-12-31T23:30:00-00:30", 0),
      ("2000-02-29T00:00:00Z", 951_782_400_000_000),
      ("2024-02-29T12:00:00Z", 1_709_208_000_000_000),
      // Leap seconds are the second after.
      ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
      ("2016-12-31T23:59:60.5Z", 1_483_228_800_500_000),
      ("1969-12-31T23:59:60Z", 0),
      ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
      ("9999-12-31T23:59:59+00:01", 253_402_300_739_000_000),
    ] as [(String, Int64)])
  func accepts(_ text: String, _ microseconds: Int64) throws {
    #expect(try Timestamp(rfc3339: text).microseconds == microseconds)
  }

  @Test(
    "a time before 1970 is its own reason",
    arguments: [
      "1969-12-31T23:59:59.999999Z", "1970-01-01T00:59:59+01:00", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z",
      "0000-02-29T00:00:00Z", "1900-02-28T00:00:00Z",
    ])
  func before1970(_ text: String) {
    #expect(reason { () throws(InvalidEvent) in try Timestamp(rfc3339: text) } == .timeBefore1970)
  }

  @Test(
    "anything else is no time",
    arguments: [
      "", "2012", "2012-07-04", "2012-07-04T00:00:00", "2012-07-04T00:00Z", "2012-07-04 00:00:00Z",
      "2012-07-04T00:00:00.Z", "2012-07-04T00:00:00.1234567890Z", "2012-07-04T00:00:00,5Z", "2012-07-04T24:00:00Z",
      "2012-07-04T00:60:00Z", "2012-07-04T00:00:61Z", "2012-00-04T00:00:00Z", "2012-13-04T00:00:00Z",
      "2012-07-00T00:00:00Z", "2012-07-32T00:00:00Z", "2012-06-31T00:00:00Z", "2011-02-29T00:00:00Z",
      "2100-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2012-07-04T00:00:00+24:00", "2012-07-04T00:00:00+00:60",
      "2012-07-04T00:00:00+0000", "2012-07-04T00:00:00+00", "2012-07-04T00:00:00+00:00:00", "2012-07-04T00:00:00ZZ",
      "2012-07-04T00:00:00Z ", " 2012-07-04T00:00:00Z", "+2012-07-04T00:00:00Z", "-012-07-04T00:00:00Z",
      "12012-07-04T00:00:00Z", "2012-7-4T00:00:00Z", "２012-07-04T00:00:00Z", "2012-07-04T00:00:00.１Z",
      "2012/07/04T00:00:00Z", "2012-07-04T00-00-00Z", "2012-07-04T00:00:0aZ", "2012-07-04T00:00:00\u{0}",
      "9999-12-31T23:59:59-00:01", "9999-12-31T23:59:60Z",
    ])
  func refuses(_ text: String) {
    #expect(reason { () throws(InvalidEvent) in try Timestamp(rfc3339: text) } == .illTypedMember)
  }

  @Test(
    "times are written in UTC with six digits",
    arguments: [
      (0, "1970-01-01T00:00:00.000000Z"),
      (1_341_360_000_123_456, "2012-07-04T00:00:00.123456Z"),
      (951_868_799_999_999, "2000-02-29T23:59:59.999999Z"),
      (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
      // No event has these, but whoever prints one must not crash.
      (-1, "1969-12-31T23:59:59.999999Z"),
      (-62_167_219_200_000_000, "0000-01-01T00:00:00.000000Z"),
      (-62_167_219_200_000_001, "-1-12-31T23:59:59.999999Z"),
      (253_402_300_800_000_000, "10000-01-01T00:00:00.000000Z"),
      (Int64.max, "294247-01-10T04:00:54.775807Z"),
      (Int64.min, "-290308-12-21T19:59:05.224192Z"),
    ] as [(Int64, String)])
  func writes(_ microseconds: Int64, _ text: String) {
    #expect(Timestamp(microseconds: microseconds).description == text)
  }

  @Test("what is written reads back, on every day of 450 years")
  func roundTrip() throws {
    for day in stride(from: Int64(0), to: 164_000, by: 1) {
      let time = Timestamp(microseconds: day * 86_400_000_000 + day * 524_287 % 86_400_000_000)
      let read = try Timestamp(rfc3339: time.description)
      if read != time { Issue.record("\(time) was read as \(read)") }
    }
  }

  @Test("a time far after its record's is not believed (SPEC 2, clocks lie)")
  func clockRule() {
    let recorded = Timestamp(microseconds: 1_000_000_000_000)
    let latest = Timestamp(microseconds: recorded.microseconds + 300_000_000)
    let tooLate = Timestamp(microseconds: latest.microseconds + 1)
    #expect(latest.believed(recorded: recorded) == latest)
    #expect(tooLate.believed(recorded: recorded) == recorded)
    #expect(tooLate.believed(recorded: nil) == tooLate)
    #expect(Timestamp(microseconds: 5).believed(recorded: recorded) == Timestamp(microseconds: 5))
  }
}
