import FanoutStoreTesting
import Foundation
import Synchronization
import Testing

/// The PostgreSQL that tests run on: the one of `FANOUT_TEST_POSTGRES`, which must take 500 connections, or one of their own,
/// started once for the whole run.
enum PostgresServer {
  /// Its address as a URI, nil if there is no server and none can be started.
  static let address: String? = {
    let given = ProcessInfo.processInfo.environment["FANOUT_TEST_POSTGRES"] ?? ""
    return given.isEmpty ? start() : given
  }()

  static var isPresent: Bool { address != nil }
  static let missing: Comment =
    "SKIPPED: no PostgreSQL; install postgresql-15, or give the address of a server as FANOUT_TEST_POSTGRES"

  /// A server may not run as root, so root runs it as `postgres`.
  private static let script = """
    set -e
    bin=/usr/lib/postgresql/15/bin
    [ -x $bin/postgres ]
    folder=$2
    mkdir -m 700 "$folder"
    as=
    if [ "$(id -u)" = 0 ]; then chown postgres "$folder"; as="runuser -u postgres --"; fi
    cd "$folder"
    $as $bin/initdb -D "$folder/data" --auth=trust --no-sync -E UTF8 --locale=C -U postgres >"$folder/log" 2>&1
    $as $bin/pg_ctl -D "$folder/data" -w -t 60 -l "$folder/data/log" -o "-k $folder -p $1 -c listen_addresses=127.0.0.1 \\
      -c fsync=off -c full_page_writes=off -c shared_buffers=128MB -c max_connections=500 -c deadlock_timeout=100ms \\
      -c max_parallel_workers_per_gather=0 -c max_wal_size=512MB" start >>"$folder/log" 2>&1
    """

  private static func start() -> String? {
    let parent = unsafe access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
    let folder = "\(parent)/fanout-pg-\(getpid())"
    guard let port = freePort(), run(script, "\(port)", folder) else { return nil }
    Self.folder.withLock { $0 = folder }
    atexit { PostgresServer.stop() }
    return "postgres://postgres@127.0.0.1:\(port)/postgres"
  }

  private static let folder = Mutex("")

  private static func stop() {
    let folder = folder.withLock { $0 }
    let script = """
      kill -QUIT "$(head -1 "$1/data/postmaster.pid")"; sleep 0.3; rm -rf "$1"
      """
    _ = run(script, folder)
  }

  /// Not `Process`: its end is noticed by the closing of a socket, which a server would inherit and keep open.
  private static func run(_ script: String, _ arguments: String...) -> Bool {
    let words = (["sh"] + arguments).joined(separator: " ")
    return unsafe system("exec >/dev/null 2>&1 </dev/null; set -- \(words); shift; \(script)") == 0
  }

  private static func freePort() -> UInt16? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe bind(descriptor, pointer, length) == 0 && getsockname(descriptor, pointer, &length) == 0
      }
    }
    return bound ? UInt16(bigEndian: address.sin_port) : nil
  }
}
