package import FanoutStore
package import FanoutWorker
private import Glibc
package import Kafka
package import SocialEvents

/// Makes of a command's options what they stand for.
extension Arguments {
  package func topics() throws -> Topics { Topics(prefix: try string(.topicPrefix)) }

  /// - Parameter log: receives what the Kafka client has to say.
  package func kafka(log: Log? = nil) throws -> ClientConfiguration {
    var properties = try optional(.kafkaFile).map { try SecretFile.properties($0, for: .kafkaFile) } ?? []
    for text in all(.kafka) {
      guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
        throw UsageError("--kafka takes NAME=VALUE, such as --kafka security.protocol=ssl")
      }
      properties.append((String(text[..<equals]), String(text[text.index(after: equals)...])))
    }
    if let path = optional(.kafkaPasswordFile) {
      if properties.contains(where: { $0.name == "sasl.password" }) {
        throw UsageError("the SASL password is given twice: by --kafka-password-file and as sasl.password")
      }
      properties.append(("sasl.password", try SecretFile.password(path, for: .kafkaPasswordFile)))
    }
    var configuration = ClientConfiguration(
      brokers: try string(.brokers), clientID: "fanout-\(getpid())", properties: properties)
    if let log {
      configuration.onEvent = { event in
        switch event.level {
        case .debug, .info, .notice: log.debug("kafka: \(event)")
        case .warning, .error, .critical: log.warning("kafka: \(event)")
        }
      }
    }
    return configuration
  }

  package func log() throws -> Log {
    let name = try string(.logLevel)
    guard let level = Log.Level(name: name) else {
      throw UsageError("--log-level must be debug, info, warning or error, not \"\(name)\"")
    }
    return Log(level: level) { level, message in
      note("\(Timestamp(microseconds: microsecondsSince1970())) \(level) \(message)")
    }
  }

  package func storeAddress() throws -> StoreAddress { try StoreAddress(try string(.store)) }

  /// The path of `--store sqlite:PATH`, for what has a file of its own.
  func storePath() throws -> String {
    guard case .sqlite(let path) = try storeAddress() else {
      throw UsageError("--store must be sqlite:PATH here")
    }
    return path
  }

  /// The settings that were asked for; nil if none was, which takes a store as it is.
  package func settings() throws -> StoreSettings? {
    let limit = try optionalNumber(.feedLimit, in: 1...1_000_000)
    let ownPosts: Bool?
    switch optional(.ownPosts) {
    case nil: ownPosts = nil
    case "on": ownPosts = true
    case "off": ownPosts = false
    case let other?: throw UsageError("--own-posts must be on or off, not \"\(other)\"")
    }
    if limit == nil && ownPosts == nil { return nil }
    let standard = StoreSettings.standard
    return StoreSettings(
      feedLimit: limit ?? standard.feedLimit, includesOwnPosts: ownPosts ?? standard.includesOwnPosts)
  }

  func openStore(_ access: StoreAddress.Access) throws -> any Store {
    try storeAddress().open(access, settings: try settings())
  }

  package func workerConfiguration(kafka: ClientConfiguration, group: String) throws -> WorkerConfiguration {
    var configuration = WorkerConfiguration(kafka: kafka, topics: try topics(), group: group)
    configuration.sliceSize = try number(.sliceSize, in: 1...1_000_000)
    configuration.maxInFlight = try number(.maxInFlight, in: 3...10_000_000)
    configuration.writers = try optionalNumber(.writers, in: 1...64) ?? storeAddress().usualWriters
    return configuration
  }
}
