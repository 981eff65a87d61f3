import Foundation
import Kafka
import Testing

/// A real Kafka that shows certificates and lets in nobody but `alice`, for the tests of one suite.
struct SecureKafka: Sendable {
  let brokers: String
  /// Where the same broker shows a certificate that has expired.
  let expired: String
  /// Where it wants a certificate of its clients, and no login.
  let mutual: String
  let certificates: Certificates
  let password: String
  let passwordFile: String
  let wrongPasswordFile: String
  /// Keeps the files.
  private let folder: TestFolder
  private let process: OwnKafka

  @TaskLocal private static var running: SecureKafka?

  /// That of the suite whose test is running.
  static var current: SecureKafka {
    get throws { try #require(running, "the suite lacks the trait .secureKafka") }
  }

  fileprivate static func start() async throws -> SecureKafka {
    let folder = try TestFolder()
    let certificates = try await Certificates.make(in: folder)
    let password = "s3cret-\(UInt64.random(in: 0...UInt64.max))"
    let (expired, mutual, inner, controller) = try (freePort(), freePort(), freePort(), freePort())
    let listeners =
      "SASL_SSL://127.0.0.1:{port},EXPIRED://127.0.0.1:\(expired),MUTUAL://127.0.0.1:\(mutual),"
      + "INTERNAL://127.0.0.1:\(inner)"
    let security = "org.apache.kafka.common.security"
    let settings = [
      "listeners=\(listeners),CONTROLLER://127.0.0.1:\(controller)", "advertised.listeners=\(listeners)",
      "controller.quorum.voters=1@127.0.0.1:\(controller)",
      "listener.security.protocol.map=CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,SASL_SSL:SASL_SSL,EXPIRED:SSL,MUTUAL:SSL",
      "ssl.keystore.type=PEM", "ssl.keystore.location=\(certificates.keyAndCertificate)",
      "listener.name.expired.ssl.keystore.location=\(certificates.keyAndExpiredCertificate)",
      "listener.name.mutual.ssl.client.auth=required", "listener.name.mutual.ssl.truststore.type=PEM",
      "listener.name.mutual.ssl.truststore.location=\(certificates.authority)",
      "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,OAUTHBEARER",
      "listener.name.sasl_ssl.plain.sasl.jaas.config=\(security).plain.PlainLoginModule required "
        + "user_alice=\"\(password)\";",
      "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=\(security).scram.ScramLoginModule required;",
      "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config=\(security).oauthbearer.OAuthBearerLoginModule required "
        + "unsecuredLoginStringClaim_sub=\"broker\";",
    ]
    let process = try await OwnKafka.start(
      in: folder,
      settings.flatMap { ["--set", $0] } + ["--add-scram", "SCRAM-SHA-256=[name=alice,password=\(password)]"])
    return SecureKafka(
      brokers: process.brokers, expired: "127.0.0.1:\(expired)", mutual: "127.0.0.1:\(mutual)",
      certificates: certificates, password: password,
      passwordFile: try folder.write("password", password + "\n"),
      wrongPasswordFile: try folder.write("wrong", "s3cret"), folder: folder, process: process)
  }

  /// Commands with these variables, which may take them to be somebody else.
  func deployment(_ login: [String: String], createsTopics: Bool = true) async throws -> Deployment {
    try await Deployment.start(on: .kafka, at: brokers, environment: login, createsTopics: createsTopics)
  }

  /// For clients within the tests.
  /// - Parameter place: where they are told that the brokers are.
  func client(at place: String? = nil) -> ClientConfiguration {
    let properties = (properties("PLAIN") + ["sasl.password=" + password]).map { property in
      let parts = property.split(separator: "=", maxSplits: 1).map(String.init)
      return (name: parts[0], value: parts[1])
    }
    return ClientConfiguration(brokers: place ?? brokers, clientID: "tests", properties: properties)
  }

  /// Writes a file and returns its path.
  func write(_ text: String) throws -> String { try folder.write("file-\(UInt32.random(in: 0...UInt32.max))", text) }

  /// Variables by which a command logs in as alice.
  /// - Parameter properties: of librdkafka; of two values of one the last holds.
  func login(by mechanism: String, _ more: String...) -> [String: String] {
    [
      "FANOUT_KAFKA": (properties(mechanism) + more).joined(separator: ";"),
      "FANOUT_KAFKA_PASSWORD_FILE": passwordFile,
    ]
  }

  /// Of librdkafka, for a login as alice; but for the password.
  func properties(_ mechanism: String) -> [String] {
    [
      "security.protocol=sasl_ssl", "ssl.ca.location=\(certificates.authority)", "sasl.mechanisms=\(mechanism)",
      "sasl.username=alice",
      // Where "localhost" is ::1 as well, nobody is there.
      "broker.address.family=v4",
    ]
  }

  /// Runs a suite while a ``SecureKafka`` runs.
  struct Scope: SuiteTrait, TestScoping {
    func provideScope(
      for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
      let kafka = try await SecureKafka.start()
      try await SecureKafka.$running.withValue(kafka) { try await function() }
      try await kafka.process.stop()
    }
  }
}

extension Trait where Self == SecureKafka.Scope {
  /// All tests of the suite share one ``SecureKafka/current``.
  static var secureKafka: SecureKafka.Scope { SecureKafka.Scope() }
}
