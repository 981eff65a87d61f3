/// An option of a command, which is also an environment variable: `--feed-limit` is `FANOUT_FEED_LIMIT`.
package struct Option: Sendable {
  package let name: String
  /// What stands for the value in help; nil for a switch.
  package let placeholder: String?
  let help: String
  var standard: String?
  /// May be given more than once; in the variable, values are separated by semicolons.
  var isRepeatable = false

  package var variable: String {
    "FANOUT_" + name.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
  }

  static func flag(_ name: String, _ help: String) -> Option {
    Option(name: name, placeholder: nil, help: help)
  }
}

extension Option {
  static let store = Option(
    name: "store", placeholder: "STORE", help: "where the views are kept: sqlite:PATH or postgres://USER@HOST/DATABASE",
    standard: "sqlite:fanout.db")
  static let brokers = Option(
    name: "brokers", placeholder: "HOST:PORT,…", help: "the Kafka brokers", standard: "localhost:9092")
  static let kafka = Option(
    name: "kafka", placeholder: "NAME=VALUE",
    help: "any librdkafka property, such as security.protocol=ssl; may be repeated (in the variable: a;b;c)",
    isRepeatable: true)
  static let kafkaFile = Option(
    name: "kafka-file", placeholder: "PATH",
    help: "a file with such properties, one NAME=VALUE a line; the place for those that are secret")
  static let kafkaPasswordFile = Option(
    name: "kafka-password-file", placeholder: "PATH",
    help: "a file with the SASL password, so that it stands neither in arguments nor in variables")
  static let topicPrefix = Option(
    name: "topic-prefix", placeholder: "PREFIX", help: "what the names of all topics begin with", standard: "social.")
  static let group = Option(
    name: "group", placeholder: "NAME", help: "the consumer group; all workers of one store share it",
    standard: "fanout")
  static let feedLimit = Option(
    name: "feed-limit", placeholder: "N",
    help: "how many items of a feed readers see; kept in the store when it is made (1000 if not given)")
  static let ownPosts = Option(
    name: "own-posts", placeholder: "on|off",
    help: "whether users' own posts are in their feeds; kept in the store when it is made (on if not given)")
  static let sliceSize = Option(
    name: "slice-size", placeholder: "N", help: "fan-outs to more followers than this are cut into slices",
    standard: "5000")
  static let maxInFlight = Option(
    name: "max-in-flight", placeholder: "N",
    help: "the most records taken from Kafka and not yet acknowledged; bounds memory", standard: "60000")
  static let writers = Option(
    name: "writers", placeholder: "N",
    help: "batches written to the store at once, each over its own connection (2 on PostgreSQL, 1 on SQLite)")
  static let logLevel = Option(
    name: "log-level", placeholder: "LEVEL", help: "debug, info, warning or error", standard: "info")
  static let json = Option.flag("json", "print JSON, one object a line")
}
