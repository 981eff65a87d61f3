import Foundation
import PostgresTesting
import Testing

@Suite("TLS and logins of real servers", .crowded, .enabled(if: Shared.isPresent, Shared.missing))
struct SecurityTests {
  private static let secret = "s3cret-1"

  @Test("TLS with SASL PLAIN, the password from a file; what is wrong is refused, and the secret is in no message")
  func kafka() async throws {
    let folder = try TestFolder()
    let certificates = try await Certificates.make(in: folder)
    let module = "org.apache.kafka.common.security"
    let broker = try await OwnKafka.start(
      in: folder,
      [
        "client.listener=SASL_SSL", "ssl.keystore.type=PEM", "ssl.keystore.location=" + certificates.keyAndCertificate,
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_ssl.plain.sasl.jaas.config=\(module).plain.PlainLoginModule required "
          + "user_alice=\"\(Self.secret)\";",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=\(module).scram.ScramLoginModule required;",
      ].flatMap { ["--set", $0] } + ["--add-scram", "SCRAM-SHA-256=[name=alice,password=\(Self.secret)]"])
    let right = try folder.write("right", Self.secret + "\n")
    let wrong = try folder.write("wrong", "s3cret-2")
    let environment = [
      "FANOUT_BROKERS": broker.brokers, "FANOUT_STORE": "sqlite:" + folder.file("store.db"),
      "FANOUT_KAFKA": "security.protocol=sasl_ssl;sasl.mechanisms=PLAIN;sasl.username=alice;ssl.ca.location="
        + certificates.authority,
      "FANOUT_KAFKA_PASSWORD_FILE": right,
    ]
    func run(_ words: [String], _ changes: [String: String] = [:], expecting status: Int32 = 0) async throws
      -> Fanout.Result
    {
      let result = try await Fanout.run(
        words, environment: environment.merging(changes) { $1 }, in: folder, expecting: status)
      #expect(!(result.output + result.error).contains("s3cret"))
      return result
    }

    _ = try await run(["topics", "create", "--partitions", "1", "--replication-factor", "1"])
    let events = try folder.write("events.ndjson", Lines.follow("ann", "bob", id: "1") + "\n")
    _ = try await run(["emit", events])
    _ = try await run(["worker", "--until-caught-up", "--log-level", "debug"])
    #expect(try await run(["show", "followers", "bob"]).lines == ["ann"])

    func expectRefusal(_ changes: [String: String], _ reason: String) async throws {
      for words in [["lag"], ["worker", "--until-caught-up", "--log-level", "debug"], ["emit", events]] {
        let result = try await run(words, changes, expecting: 1)
        #expect(result.error.contains(reason), "\(words): \(result.error)")
      }
    }
    try await expectRefusal(["FANOUT_KAFKA_PASSWORD_FILE": wrong], "can't log in to Kafka")
    try await expectRefusal(
      ["FANOUT_KAFKA": (environment["FANOUT_KAFKA"] ?? "").replacing("ca.pem", with: "other.pem")],
      "certificate verify failed")
    // The certificate is for 127.0.0.1 only.
    try await expectRefusal(
      ["FANOUT_BROKERS": broker.brokers.replacing("127.0.0.1", with: "localhost")], "certificate verify failed")
    try await broker.stop()
  }

  @Test(
    "PostgreSQL with verify-full, the password from PGPASSFILE; what is wrong is refused, and the message says what",
    .enabled(if: OwnPostgres.isInstalled, OwnPostgres.missing))
  func postgres() async throws {
    let folder = try TestFolder()
    let certificates = try await Certificates.make(in: folder)
    let server = try OwnPostgres(
      rules: ["hostssl all ann all scram-sha-256", "host all postgres 127.0.0.1/32 trust"],
      tls: (certificates.key, certificates.certificate))
    defer { server.stop() }
    try SharedConnection(server.address).execute(
      "CREATE ROLE ann LOGIN PASSWORD '\(Self.secret)'; CREATE SCHEMA AUTHORIZATION ann")
    let address = server.address.replacing("postgres@", with: "ann@") + "?sslmode=verify-full&sslrootcert="
    func passwords(_ secret: String) throws -> String {
      let path = try folder.write("passwords", "*:*:*:ann:\(secret)\n")
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      return path
    }
    let right = ["PGPASSFILE": try passwords(Self.secret), "FANOUT_STORE": address + certificates.authority]
    _ = try await Fanout.run(["migrate"], environment: right, in: folder)
    #expect(try await Fanout.run(["digest"], environment: right, in: folder).lines.count > 1)

    let wrongs: [(changes: [String: String], reason: String)] = [
      (["FANOUT_STORE": address + certificates.otherAuthority], "certificate verify failed"),
      (
        ["FANOUT_STORE": right["FANOUT_STORE"]?.replacing("127.0.0.1", with: "localhost") ?? ""],
        "does not match host name"
      ),
      (["PGPASSFILE": try passwords("s3cret-2")], "password authentication failed"),
    ]
    for (changes, reason) in wrongs {
      // A worker does not wait for what waiting can't mend.
      for command in ["digest", "migrate", "worker"] {
        let result = try await Fanout.run(
          [command], environment: right.merging(changes) { $1 }, in: folder, expecting: 1)
        #expect(result.error.contains(reason), "\(command): \(result.error)")
        #expect(!(result.output + result.error).contains("s3cret"))
      }
    }
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
}
