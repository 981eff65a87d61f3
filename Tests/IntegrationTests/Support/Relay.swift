import Foundation
import Glibc
import Synchronization

/// A process that passes connections on from one port to another, made of what Debian has. It can be made a bad network.
final class Relay: Sendable {
  enum Fault: Sendable {
    /// Every piece of data, in either direction, is held back for so many milliseconds.
    case delay(Int)
    /// Connections are taken, but nothing passes any more.
    case blackhole
    /// The next connection breaks after so many bytes of an answer, and so does every `period`th after it.
    case breaking(Break, afterBytes: Int, every: Int)
  }

  enum Break: String, CaseIterable, Sendable {
    case closed, reset, silent
  }

  private let process: ChildProcess
  private let folder: TestFolder
  private let commands = Mutex(0)

  init(from port: Int, to address: String) throws {
    folder = try TestFolder()
    process = try ChildProcess(
      "/usr/bin/env", ["python3", "-c", Self.script, "\(port)", address, folder.file("command")],
      environment: Fanout.environment, in: folder)
  }

  func stop() { process.kill() }

  // MARK: Faults

  func begin(_ fault: Fault) async throws {
    switch fault {
    case .delay(let milliseconds): try await command("delay \(milliseconds)")
    case .blackhole: try await command("blackhole")
    case .breaking(let end, let bytes, let period): try await command("\(end) \(bytes) \(period)")
    }
  }

  /// Lets everything pass, what was held back first.
  func heal() async throws { try await command("pass") }

  /// Breaks all connections. New ones are taken.
  func cut() async throws { try await command("cut") }

  private func command(_ words: String) async throws {
    let number = commands.withLock { commands in
      commands += 1
      return commands
    }
    let line = "\(number) \(words)"
    // The relay listens to signals once it has said so.
    try await eventually("the relay is there", else: process.report) { process.standardOutput.contains("ready") }
    let path = try folder.write("next", line)
    _ = unsafe rename(path, folder.file("command"))
    process.signal(SIGUSR1)
    try await eventually("the relay does: \(words)", else: process.report) { process.standardOutput.contains(line) }
  }

  private static let script = """
    import asyncio, signal, socket, struct, sys
    port, address, command = int(sys.argv[1]), sys.argv[2].rsplit(":", 1), sys.argv[3]
    delay, passing, open_now = 0.0, None, set()
    breaking = None
    async def pump(reader, writer, end=None, left=0):
        try:
            while data := await reader.read(65536):
                if delay:
                    await asyncio.sleep(delay)
                await passing.wait()
                if end:
                    data, left = data[:left], left - len(data)
                writer.write(data)
                await writer.drain()
                if end and left <= 0:
                    if end == "silent":
                        await asyncio.sleep(3600)
                    if end == "reset":
                        linger = struct.pack("ii", 1, 0)
                        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    return
        except OSError:
            pass
        finally:
            writer.close()
    async def serve(reader, writer):
        ending = ()
        if breaking:
            if breaking[3] % breaking[2] == 0:
                ending = breaking[:2]
            breaking[3] += 1
        try:
            await passing.wait()
            there = await asyncio.open_connection(address[0], int(address[1]))
        except OSError:
            writer.transport.abort()
            return
        both = {writer.transport, there[1].transport}
        open_now.update(both)
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer, *ending))
        open_now.difference_update(both)
    def obey():
        global delay, breaking
        line = open(command).read()
        words = line.split()[1:]
        breaking = None
        if words[0] == "cut":
            for transport in list(open_now):
                transport.abort()
        elif words[0] in ("closed", "reset", "silent"):
            breaking = [words[0], int(words[1]), int(words[2]), 0]
        else:
            delay = int(words[1]) / 1000 if words[0] == "delay" else 0.0
            passing.clear() if words[0] == "blackhole" else passing.set()
        print(line, flush=True)
    async def main():
        global passing
        passing = asyncio.Event()
        passing.set()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, obey)
        server = await asyncio.start_server(serve, "127.0.0.1", port)
        print("ready", flush=True)
        await server.serve_forever()
    asyncio.run(main())
    """
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
    let words = ["start", "--dir", folder.file("kafka")] + options
    let output: String
    do {
      output = try await run(tool, words, folder)
    } catch {
      // One in 64 of the tool's random ids begins with a dash, which Kafka's formatter takes for an option.
      output = try await run(tool, words, folder)
    }
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
  /// - Parameter byKilling: whether it gets no time to end in order.
  func restart(byKilling: Bool = false) async throws {
    _ = try await Self.run(
      tool, ["restart", "--dir", folder.file("kafka"), "--down", "3"] + (byKilling ? ["--kill"] : []), folder)
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
