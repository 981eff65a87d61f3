import Foundation
import Testing

@Suite(
  "TLS and logins of a real Kafka", .secureKafka, .crowded, .enabled(if: Shared.isPresent, Shared.missing))
struct KafkaSecurityTests {
  @Test("TLS with SASL PLAIN, the password from a file")
  func plain() async throws {
    let folder = try TestFolder()
    let login = try SecureKafka.current.login(by: "PLAIN", in: folder)
    func run(_ words: String...) async throws -> Fanout.Result {
      try await Fanout.run(words, environment: login, in: folder)
    }
    _ = try await run("topics", "create", "--partitions", "1", "--replication-factor", "1", "--topic-prefix", "plain.")
    _ = try await run(
      "emit", "--topic-prefix", "plain.", try folder.write("events", Lines.follow("ann", "bob", id: "1") + "\n"))
    let worker = try await run("worker", "--topic-prefix", "plain.", "--until-caught-up")
    #expect(try await run("show", "followers", "bob").lines == ["ann"])
    #expect(!worker.error.contains("certificate"), "nothing is found wrong with it: \(worker.error)")
  }

  @Test("what is not to be verified is not, and nothing is found wrong with it")
  func unverified() async throws {
    let folder = try TestFolder()
    let kafka = try SecureKafka.current
    let wrongs = [
      (
        "127.0.0.1",
        ["enable.ssl.certificate.verification=false", "ssl.ca.location=\(kafka.certificates.otherAuthority)"]
      ),
      ("localhost", ["ssl.endpoint.identification.algorithm=none"]),
    ]
    for (host, properties) in wrongs {
      var login = kafka.login(by: "PLAIN", properties.joined(separator: ";"), in: folder)
      login["FANOUT_BROKERS"] = kafka.brokers.replacing("127.0.0.1", with: host)
      let result = try await Fanout.run(
        ["topics", "check", "--topic-prefix", "none."], environment: login, in: folder, expecting: 3)
      #expect(!result.error.contains("certificate"), "\(result.error)")
    }
  }

  enum Wrong: String, CaseIterable {
    case authority = "was not issued by an authority that is trusted here"
    case host = "is for another host"
    case expired = "has expired"
    case password = "can't log in to Kafka"
  }

  @Test("what is wrong is refused, and the message says what it is and nothing else", arguments: Wrong.allCases)
  func refusals(_ wrong: Wrong) async throws {
    let folder = try TestFolder()
    let kafka = try SecureKafka.current
    var login = kafka.login(by: "PLAIN", in: folder)
    switch wrong {
    case .authority:
      login = kafka.login(by: "PLAIN", "ssl.ca.location=" + kafka.certificates.otherAuthority, in: folder)
    // The certificate is for 127.0.0.1 only.
    case .host: login["FANOUT_BROKERS"] = kafka.brokers.replacing("127.0.0.1", with: "localhost")
    case .expired:
      login = kafka.login(by: "PLAIN", "security.protocol=ssl", in: folder)
      login["FANOUT_BROKERS"] = kafka.expired
    case .password: login["FANOUT_KAFKA_PASSWORD_FILE"] = try folder.write("wrong", "another")
    }
    let events = try folder.write("events", Lines.follow("ann", "bob", id: "1") + "\n")
    // A worker waits for brokers that are away, but not for what waiting can't mend.
    for words in [["lag"], ["topics", "create"], ["emit", events], ["worker"], ["worker", "--until-caught-up"]] {
      let result = try await Fanout.run(words, environment: login, in: folder, expecting: 1)
      #expect(Wrong.allCases.filter { result.error.contains($0.rawValue) } == [wrong], "\(words): \(result.error)")
      if wrong != .password {
        #expect(result.error.contains("the certificate of \(login["FANOUT_BROKERS"] ?? "") \(wrong.rawValue)"))
      }
    }
  }
}
