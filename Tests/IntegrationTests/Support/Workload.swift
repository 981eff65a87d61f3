import FanoutStore
import Foundation
import Testing

/// A set of events, and what a store must show in the end.
struct Workload: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// The store's settings, as variables.
  var environment: [String: String] = [:]
  /// The SHA-256 of the canonical dump (SPEC 9).
  let digest: String
  /// How many edges and posts the events are about, at least.
  let registers: Int
  /// Slices that make large fan-outs of some posts in it.
  let sliceSize: Int
  /// Puts all events into the topics.
  let publish: @Sendable (Deployment) async throws -> Void

  /// Fails unless a store shows what it must.
  func check(
    _ deployment: Deployment, store: OwnStore? = nil, _ after: Comment,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let actual = try await deployment.digest(of: store)
    #expect(actual == digest, after, sourceLocation: sourceLocation)
  }
}

/// SHA-256 of lines, each with a line feed.
func sha256(ofLines lines: [[UInt8]]) -> String {
  var hash = SHA256()
  for line in lines {
    unsafe line.withUnsafeBytes { unsafe hash.update($0) }
    hash.update("\n")
  }
  return hexadecimal(hash.finish())
}

func sha256(of bytes: [UInt8]) -> String {
  var hash = SHA256()
  unsafe bytes.withUnsafeBytes { unsafe hash.update($0) }
  return hexadecimal(hash.finish())
}
