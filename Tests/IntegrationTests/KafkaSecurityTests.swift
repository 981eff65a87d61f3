import Foundation
import Kafka
import PostgresTesting
import SocialEvents
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

  /// Secrets are taken out of what librdkafka says, by which it is known what is wrong.
  @Test("a wrong password is refused at once, whatever its letters", arguments: ["e", "auth", "error", "SASL", "1"])
  func lettersOfPassword(_ password: String) async throws {
    let kafka = try SecureKafka.current
    var login = kafka.login(by: "PLAIN")
    login["FANOUT_KAFKA_PASSWORD_FILE"] = try kafka.write(password)
    for result in try await everyCommand(login) { #expect(result.error.contains("can't log in"), "\(result.error)") }
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

  /// A login that the network interrupts looks to librdkafka like one that is refused.
  @Test(
    "a connection that breaks at any byte of handshake and login is no refusal: a worker waits, and works when all is well",
    arguments: [Relay.Break.closed, .reset])
  func interrupted(end: Relay.Break) async throws {
    let kafka = try SecureKafka.current
    let port = try freePort()
    let relay = try Relay(from: port, to: kafka.brokers)
    defer { relay.stop() }
    let client = kafka.client(at: "127.0.0.1:\(port)")
    var bytesAtLogin: Int?
    // The handshake takes two thousand bytes and more, the answers of the login some dozens each.
    for bytes in [0, 1, 5, 100, 1000] + (50...100).map({ $0 * 40 }) {
      try await relay.begin(.breaking(end, afterBytes: bytes, every: 1))
      let failure: KafkaError? = try await onThread {
        do throws(KafkaError) {
          _ = try Admin.metadata(with: client, timeoutMilliseconds: 250)
          return nil
        } catch {
          return error
        }
      }
      // Whatever librdkafka still did when time was up.
      guard let failure else { continue }
      #expect(!failure.isAuthenticationFailure, "\(bytes) bytes: \(failure)")
      if failure.message.contains("SaslAuthenticate") { bytesAtLogin = bytes }
    }
    // There the worker begins.
    try await relay.begin(.breaking(end, afterBytes: try #require(bytesAtLogin), every: 1))
    let deployment = try await Deployment.start(
      on: .kafka, at: kafka.brokers, environment: kafka.login(by: "PLAIN"))
    let worker = try deployment.startWorker(environment: ["FANOUT_BROKERS": "127.0.0.1:\(port)"])
    try await worker.says("SaslAuthenticateRequest failed")
    try await worker.says("trying again")
    try await relay.heal()
    try await worker.isAssigned()
    try await worker.stopInOrder()
  }

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
    #expect(worker.libraries.filter { $0.contains("librdkafka") } == [NewerLibrary.path])
    try await worker.stopInOrder()
    #expect(try await deployment.catchUp().deadLetters == 0)
    try await Higgs.small.check(deployment, "logged in with SCRAM")

    for result in try await everyCommand(login.merging(["FANOUT_KAFKA_PASSWORD_FILE": kafka.wrongPasswordFile]) { $1 })
    {
      #expect(result.error.contains("can't log in to Kafka"), "\(result.error)")
      #expect(!result.error.contains("even when the password is right"), "\(result.error)")
    }
  }

  // MARK: OAUTHBEARER

  private static let unsecured = "enable.sasl.oauthbearer.unsecure.jwt=true"

  @Test("OAUTHBEARER with unsecured tokens: every kind of client logs in, and one without a user is refused")
  func unsecuredTokens() async throws {
    let kafka = try SecureKafka.current
    let login = kafka.login(by: "OAUTHBEARER", Self.unsecured, "sasl.oauthbearer.config=principal=alice")
    try await expectAllLetIn(login)
    // The broker looks for the user's name under "sub".
    let nameless = "sasl.oauthbearer.config=principalClaimName=azp principal=alice"
    for result in try await everyCommand(kafka.login(by: "OAUTHBEARER", Self.unsecured, nameless)) {
      #expect(result.error.contains("can't log in to Kafka") && result.error.contains("invalid_token"))
    }
  }

  /// Has every kind of client log in: one that administers, a producer, and a consumer.
  private func expectAllLetIn(_ login: [String: String]) async throws {
    let deployment = try await SecureKafka.current.deployment(login)
    try await deployment.emit(lines: Self.follow)
    #expect(try await deployment.catchUp().events == 1)
    #expect(try await deployment.run(["lag"]).output.contains("lag in all: 0"))
    #expect(try await deployment.run(["show", "followers", "bob"]).lines == ["ann"])
  }

  @Test("a librdkafka that crashes when it renews an unsecured token is not brought to it; a newer one renews")
  func renewal() async throws {
    let kafka = try SecureKafka.current
    let login = kafka.login(
      by: "OAUTHBEARER", Self.unsecured, "sasl.oauthbearer.config=principal=alice lifeSeconds=2", "debug=security")
    if !Librdkafka.renewsUnsecuredTokens {
      for result in try await everyCommand(login) {
        #expect(result.error.contains("Leave lifeSeconds out, or install librdkafka 2.2"), "\(result.error)")
      }
    }
    guard Librdkafka.renewsUnsecuredTokens || NewerLibrary.isPresent else { return }
    let renewing = Librdkafka.renewsUnsecuredTokens ? login : login.merging(NewerLibrary.environment) { $1 }
    let deployment = try await kafka.deployment(renewing)
    let worker = try deployment.startWorker(["--log-level", "debug"])
    try await eventually("it has had several tokens", else: worker.report) {
      try [worker].mustRun()
      return worker.standardError.split(separator: "\n").count { $0.contains("Creating unsecured token") } > 6
    }
    try await deployment.emit(lines: Self.follow)
    try await eventually("it applies what comes then", else: worker.report) {
      try [worker].mustRun()
      return try await deployment.run(["show", "followers", "bob"]).lines == ["ann"]
    }
    try await worker.stopInOrder()
  }

  @Test(
    "OAUTHBEARER with tokens from a service, on a newer librdkafka (Debian's is built without)",
    .enabled(if: NewerLibrary.isPresent, NewerLibrary.missing))
  func tokensFromService() async throws {
    let kafka = try SecureKafka.current
    let service = try await TokenService.start()
    func login(secret: String) -> [String: String] {
      kafka.login(
        by: "OAUTHBEARER", "sasl.oauthbearer.method=oidc", "sasl.oauthbearer.token.endpoint.url=\(service.address)",
        "sasl.oauthbearer.client.id=\(TokenService.client)", "sasl.oauthbearer.client.secret=\(secret)"
      ).merging(NewerLibrary.environment) { $1 }
    }
    try await expectAllLetIn(login(secret: TokenService.secret))
    for result in try await everyCommand(login(secret: "another")) {
      #expect(result.error.contains("can't log in to Kafka") && result.error.contains("invalid_client"))
      #expect(!result.error.contains("another"))
    }
    service.stop()
  }

  // MARK: Secrets

  @Test("a client's certificate, the password of its key from a file; a wrong one is not shown")
  func clientCertificate() async throws {
    let kafka = try SecureKafka.current
    func login(_ password: String) async throws -> Deployment {
      let file = """
        # As Kafka's own tools have it.
        security.protocol = ssl
        ssl.ca.location=\(kafka.certificates.authority)

        ssl.certificate.location=\(kafka.certificates.clientCertificate)\r
        ssl.key.location=\(kafka.certificates.clientKey)
        ssl.key.password=\(password)
        """
      return try await Deployment.start(
        on: .kafka, at: kafka.mutual, environment: ["FANOUT_KAFKA_FILE": try kafka.write(file)], createsTopics: false)
    }
    let right = try await login(Certificates.clientKeyPassword)
    try await right.run(["topics", "create", "--partitions", "1", "--replication-factor", "1"])
    try await right.emit(lines: Self.follow)
    #expect(try await right.catchUp().events == 1)

    let wrong = try await login("wr0ng-password").run(["lag"], expecting: 1)
    #expect(wrong.error.contains("ssl.key") && !wrong.error.contains("wr0ng"), "\(wrong.error)")
    let none = try await right.run(
      ["lag"], environment: ["FANOUT_KAFKA_FILE": try kafka.write("security.protocol=ssl")], expecting: 1)
    #expect(none.error.contains("was not issued by an authority that is trusted here"), "\(none.error)")
  }

  /// How a password may be given.
  enum Way: CaseIterable {
    case passwordFile, file, variable, argument

    /// - Returns: arguments and variables.
    func login(_ kafka: SecureKafka, _ password: String) throws -> (words: [String], variables: [String: String]) {
      // Whatever librdkafka has to say of its settings and of what it sends.
      let properties = kafka.properties("PLAIN") + ["debug=all"]
      let secret = "sasl.password=" + password
      let listed = properties.joined(separator: ";")
      return switch self {
      case .passwordFile:
        ([], ["FANOUT_KAFKA": listed, "FANOUT_KAFKA_PASSWORD_FILE": try kafka.write(password)])
      case .file: ([], ["FANOUT_KAFKA": listed, "FANOUT_KAFKA_FILE": try kafka.write(secret)])
      case .variable: ([], ["FANOUT_KAFKA": listed + ";" + secret])
      case .argument: ((properties + [secret]).flatMap { ["--kafka", $0] }, [:])
      }
    }
  }

  @Test(
    "however a password is given, and right or wrong, it is in no output, log line or dead letter",
    arguments: Way.allCases)
  func passwords(_ way: Way) async throws {
    let kafka = try SecureKafka.current
    for (password, isRight) in [(kafka.password, true), ("wr0ng-password-of-alice", false)] {
      let (words, variables) = try way.login(kafka, password)
      let deployment = try await kafka.deployment(variables, createsTopics: false)
      func run(_ command: String...) async throws {
        let result = try await deployment.run(command + words, expecting: isRight ? 0 : 1)
        let said = result.output + result.error
        for form in Secrets.forms(of: password, user: "alice") where said.contains(form) {
          Issue.record("\(command) shows the password as \(form)")
        }
        #expect(result.error.contains("sasl.password is among the arguments") == (way == .argument), "\(result.error)")
      }
      try await run("topics", "create", "--partitions", "1", "--replication-factor", "1")
      try await run("emit", try deployment.folder.write("events", Self.follow))
      if isRight {
        // For a dead letter.
        let client = try Producer(kafka.client())
        let poison = ProducerRecord(topic: deployment.topics.events[0], value: Array("poison".utf8))
        try client.sendAndWait([poison], timeoutMilliseconds: 60_000)
      }
      try await run("worker", "--until-caught-up", "--log-level", "debug")
      try await run("lag")
      try await run("dead-letters", "list", "--json")
      if isRight { try await run("dead-letters", "show", "0:0", "--full") }
      try await run("dead-letters", "redrive", "--all", "--dry-run")
      // Nor in help, which does not show what variables hold.
      let help = try await deployment.run(["worker", "--help"])
      #expect(!help.output.contains(password))
    }
  }

  @Test("a benchmark hands no secret to its workers as an argument")
  func benchmark() async throws {
    let kafka = try SecureKafka.current
    let folder = try TestFolder()
    let bench = try Fanout.start(
      ["bench", "memory", "--brokers", kafka.brokers],
      environment: kafka.login(by: "PLAIN").merging(["TMPDIR": folder.path]) { $1 }, in: folder)
    var arguments: [String] = []
    try await eventually("it runs a worker", else: bench.report) {
      if !bench.isRunning { throw TestFailure(bench.report) }
      let worker = bench.children.first { $0.arguments.contains("worker") }
      arguments = worker?.arguments ?? []
      // What it measures is not of interest here.
      if let worker { kill(worker.pid, SIGKILL) }
      return worker != nil
    }
    #expect(arguments.contains("--kafka-file"))
    #expect(!arguments.joined().contains(kafka.password))
    let status = try await bench.end()
    #expect(status == 1 && !bench.report.contains(kafka.password), "\(bench.report)")
  }
}
