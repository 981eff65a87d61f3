import Foundation
import Glibc

/// A process that passes connections on from one port to another, made of what Debian has.
final class Relay: Sendable {
  private let process: ChildProcess
  private let folder: TestFolder

  init(from port: Int, to address: String) throws {
    folder = try TestFolder()
    let script = """
      import asyncio, sys
      host, port = sys.argv[2].rsplit(":", 1)
      async def pump(reader, writer):
          try:
              while data := await reader.read(65536):
                  writer.write(data)
                  await writer.drain()
          except OSError:
              pass
          finally:
              writer.close()
      async def serve(reader, writer):
          there = await asyncio.open_connection(host, int(port))
          await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))
      async def main():
          server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
          await server.serve_forever()
      asyncio.run(main())
      """
    process = try ChildProcess(
      "/usr/bin/env", ["python3", "-c", script, "\(port)", address], environment: Fanout.environment, in: folder)
  }

  func stop() { process.kill() }
}

/// A port that nobody listens on at the moment.
func freePort() throws -> Int {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  defer { close(descriptor) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  var size = socklen_t(MemoryLayout<sockaddr_in>.size)
  let failed = unsafe withUnsafeMutablePointer(to: &address) { pointer in
    unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      unsafe bind(descriptor, $0, size) != 0 || getsockname(descriptor, $0, &size) != 0
    }
  }
  if failed { throw TestFailure("there is no free port") }
  return Int(UInt16(bigEndian: address.sin_port))
}

/// A real Kafka of a test's own, which may be stopped.
final class OwnKafka: Sendable {
  let brokers: String
  private let tool: String
  private let folder: TestFolder

  /// - Parameter options: of the tool that starts it.
  static func start(in folder: TestFolder, _ options: [String] = []) async throws -> OwnKafka {
    guard let shared = Shared.path else { throw TestFailure("no shared data") }
    let tool = shared + "/kafka/kafka"
    let output = try await run(tool, ["start", "--dir", folder.file("kafka")] + options, folder)
    guard let line = output.split(separator: "\n").first(where: { $0.hasPrefix("bootstrap=") }) else {
      throw TestFailure("Kafka did not say where it listens: \(output)")
    }
    return OwnKafka(brokers: String(line.dropFirst(10)), tool: tool, folder: folder)
  }

  private init(brokers: String, tool: String, folder: TestFolder) {
    self.brokers = brokers
    self.tool = tool
    self.folder = folder
  }

  deinit {
    // Not stopped in order: whatever happened, it must not stay.
    let path = folder.file("kafka/node-1/pid")
    if let text = try? String(contentsOfFile: path, encoding: .utf8),
      let pid = pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines))
    {
      kill(pid, SIGKILL)
    }
  }

  /// Stops it, and starts it again a while later.
  func restart() async throws {
    _ = try await Self.run(tool, ["restart", "--dir", folder.file("kafka"), "--down", "3"], folder)
  }

  func stop() async throws {
    _ = try await Self.run(tool, ["stop", "--dir", folder.file("kafka")], folder)
  }

  private static func run(_ tool: String, _ words: [String], _ folder: TestFolder) async throws -> String {
    let process = try ChildProcess(
      "/usr/bin/env", ["python3", tool] + words,
      environment: Fanout.environment.merging(["KAFKA_HEAP": "256m"]) { $1 }, in: folder)
    if try await process.end() != 0 { throw TestFailure(process.report) }
    return process.standardOutput
  }
}
