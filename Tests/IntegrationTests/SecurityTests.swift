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

    let wrongs: [String: [String: String]] = [
      "certificate verify failed": ["FANOUT_STORE": address + certificates.otherAuthority],
      "does not match host name": [
        "FANOUT_STORE": right["FANOUT_STORE"]?.replacing("127.0.0.1", with: "localhost") ?? ""
      ],
      "password authentication failed": ["PGPASSFILE": try passwords("s3cret-2")],
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
