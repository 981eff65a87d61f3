import Foundation
import PostgresTesting
import Testing

@Suite("Secrets, and who is let in by PostgreSQL", .crowded)
struct SecurityTests {
  private static let secret = "s3cret-1"

  @Test(
    "PostgreSQL with verify-full, the password from PGPASSFILE; what is wrong is refused, and the message says what",
    .enabled(if: OwnPostgres.isInstalled, OwnPostgres.missing))
  func postgres() async throws {
    let folder = try TestFolder()
    let certificates = try await Certificates.make(in: folder)
    let server = try await onThread {
      try OwnPostgres(
        rules: ["hostssl all ann all scram-sha-256", "host all postgres 127.0.0.1/32 trust"],
        tls: (certificates.key, certificates.certificate))
    }
    defer { server.stop() }
    try SharedConnection(server.address).execute(
      "CREATE ROLE ann LOGIN PASSWORD '\(Self.secret)'; CREATE SCHEMA AUTHORIZATION ann")
    let address = server.address.replacing("postgres@", with: "ann@") + "?sslmode=verify-full&sslrootcert="
    let right = [
      "PGPASSFILE": try Self.passwords(Self.secret, in: folder), "FANOUT_STORE": address + certificates.authority,
    ]
    _ = try await Fanout.run(["migrate"], environment: right, in: folder)
    #expect(try await Fanout.run(["digest"], environment: right, in: folder).lines.count > 1)

    let wrongs: [String: [String: String]] = [
      "certificate verify failed": ["FANOUT_STORE": address + certificates.otherAuthority],
      "does not match host name": [
        "FANOUT_STORE": right["FANOUT_STORE"]?.replacing("127.0.0.1", with: "localhost") ?? ""
      ],
      "password authentication failed": ["PGPASSFILE": try Self.passwords("s3cret-2", in: folder)],
    ]
    for (reason, changes) in wrongs {
      // A worker does not wait for what waiting can't mend.
      for command in ["digest", "migrate", "worker"] {
        let result = try await Fanout.run(
          [command], environment: right.merging(changes) { $1 }, in: folder, expecting: 1)
        #expect(wrongs.keys.filter(result.error.contains) == [reason], "\(command): \(result.error)")
        #expect(!(result.output + result.error).contains("s3cret"))
      }
    }
  }

  /// How a password of PostgreSQL may be given.
  enum Way: CaseIterable {
    case file, variable, address, parameter, argument

    /// - Returns: arguments and variables.
    func login(_ address: String, _ password: String, in folder: TestFolder) throws -> ([String], [String: String]) {
      let full = address.replacing("ann@", with: "ann:\(password)@")
      return switch self {
      case .file: ([], ["FANOUT_STORE": address, "PGPASSFILE": try SecurityTests.passwords(password, in: folder)])
      case .variable: ([], ["FANOUT_STORE": address, "PGPASSWORD": password])
      case .address: ([], ["FANOUT_STORE": full])
      case .parameter: ([], ["FANOUT_STORE": address + "?password=" + password])
      case .argument: (["--store", full], [:])
      }
    }
  }

  private static func passwords(_ secret: String, in folder: TestFolder) throws -> String {
    let path = try folder.write("passwords", "*:*:*:ann:\(secret)\n")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    return path
  }

  @Test(
    "however PostgreSQL's password is given, and right or wrong, it is in no output or log line",
    .enabled(if: OwnPostgres.isInstalled, OwnPostgres.missing))
  func passwords() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let server = try await onThread {
      try OwnPostgres(rules: ["host all ann all scram-sha-256", "host all postgres 127.0.0.1/32 trust"])
    }
    defer { server.stop() }
    try SharedConnection(server.address).execute(
      "CREATE ROLE ann LOGIN PASSWORD '\(Self.secret)'; CREATE SCHEMA AUTHORIZATION ann")
    let address = server.address.replacing("postgres@", with: "ann@")
    for way in Way.allCases {
      for (password, isRight) in [(Self.secret, true), ("s3cret-2", false)] {
        let (words, variables) = try way.login(address, password, in: deployment.folder)
        func run(_ command: String...) async throws {
          let result = try await deployment.run(command + words, environment: variables, expecting: isRight ? 0 : 1)
          #expect(!(result.output + result.error).contains("s3cret"), "\(way), \(command)")
          #expect(result.error.contains("the password of --store is among the arguments") == (way == .argument))
        }
        try await run("migrate")
        try await run("digest")
        // One way is enough for a worker that has the right one, as joining a group takes its time there.
        if !isRight || way == .argument { try await run("worker", "--until-caught-up", "--log-level", "debug") }
      }
    }
  }

  @Test("what listens does so on loopback: the embedded broker, and no worker")
  func listening() async throws {
    let folder = try TestFolder()
    let broker = try await EmbeddedBrokerProcess.start(topicPrefix: "t.", partitions: 1, in: folder)
    #expect(Set(broker.process.listeningAddresses) == ["0100007F"])
    let deployment = try await Deployment.start(on: .embedded)
    let worker = try deployment.startWorker()
    try await worker.isAssigned()
    #expect(worker.listeningAddresses == [])
  }

  @Test("a password file that can't be used is named, and its content is not shown")
  func passwordFile() async throws {
    let folder = try TestFolder()
    for (content, reason) in [("", "first line"), ("\ns3cret", "first line"), ("s3\u{0}cret", "first line")] {
      let path = try folder.write("password", content)
      let result = try await Fanout.run(["lag", "--kafka-password-file", path], in: folder, expecting: 2)
      #expect(result.error.contains(reason) && result.error.contains(path) && !result.error.contains("cret\u{0}"))
      #expect(!result.error.contains("s3"))
    }
    let missing = try await Fanout.run(["lag", "--kafka-password-file", "/not/there"], in: folder, expecting: 2)
    #expect(missing.error.contains("/not/there") && missing.error.contains("No such file"))
    let twice = try await Fanout.run(
      ["lag", "--kafka", "sasl.password=s3cret", "--kafka-password-file", try folder.write("password", "s3cret")],
      in: folder, expecting: 2)
    #expect(twice.error.contains("twice") && !twice.error.contains("s3cret"))
  }

  @Test(
    "a file of properties that can't be used is named with the line, and its content is not shown",
    arguments: [
      ("sasl.username=ann\ns3cret", "line 2"), ("# sasl.password\n\n=s3cret", "line 3"),
      ("sasl.password s3cret=", "line 1"), ("sasl.password: s3cret==", "line 1"), ("s3\u{0}=cret", "line 1"),
      ("sasl.passwort=s3cret", "\"sasl.passwort\""), ("s3cret*", "longer than 65536"),
    ])
  func propertiesFile(content: String, reason: String) async throws {
    let folder = try TestFolder()
    let isLong = content.hasSuffix("*")
    let path = try folder.write("properties", isLong ? String(repeating: content, count: 10_000) : content)
    let result = try await Fanout.run(["lag", "--kafka-file", path], in: folder, expecting: nil)
    #expect(result.status == 1 || result.status == 2)
    #expect(result.error.contains(reason) && !result.error.contains("s3"), "\(result.error)")
  }

  @Test("of two values of a property, that of --kafka holds, not that of --kafka-file")
  func precedence() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    let file = try deployment.folder.write("properties", "security.protocol=ssl\n")
    try await deployment.run(["lag", "--kafka-file", file, "--kafka", "security.protocol=plaintext"])
  }
}
