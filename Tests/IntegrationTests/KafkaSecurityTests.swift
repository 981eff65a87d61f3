import Foundation
import Kafka
import Testing

@Suite(
  "TLS and logins of a real Kafka", .secureKafka, .crowded, .enabled(if: Shared.isPresent, Shared.missing))
struct KafkaSecurityTests {
  private static let follow = Lines.follow("ann", "bob", id: "1") + "\n"

  // MARK: TLS

  @Test("TLS with SASL PLAIN, the password from a file")
  func plain() async throws {
    let kafka = try SecureKafka.current
    let deployment = try await kafka.deployment(kafka.login(by: "PLAIN"))
    try await deployment.emit(lines: Self.follow)
    let worker = try await deployment.run(["worker", "--until-caught-up"])
    #expect(try await deployment.run(["show", "followers", "bob"]).lines == ["ann"])
    #expect(!worker.error.contains("certificate"), "nothing is found wrong with it: \(worker.error)")
  }

  @Test(
    "what is not to be verified is not, and nothing is found wrong with it",
    arguments: [
      ("127.0.0.1", "enable.ssl.certificate.verification=false"),
      ("localhost", "ssl.endpoint.identification.algorithm=none"),
    ])
  func unverified(host: String, property: String) async throws {
    let kafka = try SecureKafka.current
    let authority = host == "localhost" ? kafka.certificates.authority : kafka.certificates.otherAuthority
    var login = kafka.login(by: "PLAIN", property, "ssl.ca.location=" + authority)
    login["FANOUT_BROKERS"] = kafka.brokers.replacing("127.0.0.1", with: host)
    let deployment = try await kafka.deployment(login)
    let worker = try await deployment.run(["worker", "--until-caught-up"])
    #expect(!worker.error.contains("certificate"), "\(worker.error)")
  }

  enum Wrong: String, CaseIterable {
    case authority = "was not issued by an authority that is trusted here"
    case host = "is for another host"
    case expired = "has expired"
    case password = "can't log in to Kafka"
  }

  @Test("what is wrong is refused, and the message says what it is and nothing else", arguments: Wrong.allCases)
  func refusals(_ wrong: Wrong) async throws {
    let kafka = try SecureKafka.current
    var login = kafka.login(by: "PLAIN")
    switch wrong {
    case .authority:
      login = kafka.login(by: "PLAIN", "ssl.ca.location=" + kafka.certificates.otherAuthority)
    // The certificate is for 127.0.0.1 only.
    case .host: login["FANOUT_BROKERS"] = kafka.brokers.replacing("127.0.0.1", with: "localhost")
    case .expired:
      login = kafka.login(by: "PLAIN", "security.protocol=ssl")
      login["FANOUT_BROKERS"] = kafka.expired
    case .password: login["FANOUT_KAFKA_PASSWORD_FILE"] = kafka.wrongPasswordFile
    }
    for result in try await everyCommand(login) {
      #expect(Wrong.allCases.filter { result.error.contains($0.rawValue) } == [wrong], "\(result.error)")
      if wrong != .password {
        let broker = login["FANOUT_BROKERS"] ?? kafka.brokers
        #expect(result.error.contains("the certificate of \(broker) \(wrong.rawValue)"), "\(result.error)")
      }
    }
  }

  /// Has every kind of client fail. A worker waits for brokers that are away, but not for what waiting can't mend.
  private func everyCommand(_ login: [String: String]) async throws -> [Fanout.Result] {
    let deployment = try await SecureKafka.current.deployment(login, createsTopics: false)
    let events = try deployment.folder.write("events", Self.follow)
    var results: [Fanout.Result] = []
    for words in [["lag"], ["topics", "create"], ["emit", events], ["worker"], ["worker", "--until-caught-up"]] {
      results.append(try await deployment.run(words, expecting: 1))
    }
    return results
  }

  // MARK: SCRAM

  @Test("SCRAM on the librdkafka at hand: it lets in, or the error says that this version can't, and what can")
  func scram() async throws {
    let kafka = try SecureKafka.current
    let login = kafka.login(by: "SCRAM-SHA-256")
    if Librdkafka.logsInWithScram {
      try await kafka.deployment(login).catchUp()
    } else {
      for result in try await everyCommand(login) {
        let remedy = "This librdkafka \(Librdkafka.version) can't log in with SCRAM"
        #expect(result.error.contains(remedy) && result.error.contains("librdkafka 2.6.1 or newer"), "\(result.error)")
      }
    }
  }

  @Test(
    "SCRAM on a newer librdkafka, with the same program",
    .enabled(if: NewerLibrary.isPresent, NewerLibrary.missing))
  func scramOnNewerLibrary() async throws {
    let kafka = try SecureKafka.current
    let login = kafka.login(by: "SCRAM-SHA-256").merging(NewerLibrary.environment) { $1 }
    let deployment = try await kafka.deployment(login)
    try await Higgs.small.publish(deployment)
    let worker = try deployment.startWorker()
    try await worker.isAssigned()
    #expect(worker.usesNewerLibrary)
    try await worker.stopInOrder()
    #expect(try await deployment.catchUp().deadLetters == 0)
    try await Higgs.small.check(deployment, "logged in with SCRAM")

    for result in try await everyCommand(login.merging(["FANOUT_KAFKA_PASSWORD_FILE": kafka.wrongPasswordFile]) { $1 })
    {
      #expect(result.error.contains("can't log in to Kafka"), "\(result.error)")
      #expect(!result.error.contains("even when the password is right"), "\(result.error)")
    }
  }
}
