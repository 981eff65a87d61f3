import Glibc
import Synchronization
package import Testing

/// A PostgreSQL server of a test's own, on loopback, which the test may crash and start again. It and its files are gone when
/// it is stopped, or when the test runner ends, in whatever way.
///
/// It does not wait for the disk: the end of its processes, as opposed to that of the machine, loses nothing that they wrote.
@safe
package final class OwnPostgres: Sendable {
  package let address: String
  /// Its host and port, as they stand in an address.
  package let place: String
  private let port: UInt16
  private let folder: String
  /// A shell that waits for the end of this pipe, which comes with the end of the runner at the latest, and cleans up then.
  private nonisolated(unsafe) let cleaner: UnsafeMutablePointer<FILE>
  private let isStopped = Mutex(false)

  /// Whether there is a PostgreSQL that can be started.
  package static let isInstalled = unsafe access("\(programs)/postgres", X_OK) == 0
  package static let missing: Comment = "SKIPPED: no PostgreSQL of one's own; install postgresql-15"

  private static let programs = "/usr/lib/postgresql/15/bin"
  private static let count = Atomic(0)

  /// Makes and starts a server. Blocks for about a second.
  /// - Parameters:
  ///   - rules: who may come in, as lines of `pg_hba.conf`; everybody, if there are none.
  ///   - tls: the files with the server's key and certificate; without them it has no TLS.
  package convenience init(rules: [String] = [], tls: (key: String, certificate: String)? = nil) throws {
    let rules = rules.isEmpty ? ["host all all 127.0.0.1/32 trust"] : rules
    try self.init(Self.making, [rules.map { $0 + "\n" }.joined(), tls?.key ?? "", tls?.certificate ?? ""])
  }

  /// Makes and starts a server that follows another, whose rules must let it (`host replication all …`).
  package convenience init(standbyOf primary: OwnPostgres) throws {
    try self.init(Self.following, ["\(primary.port)"])
  }

  /// - Parameter words: what the script finds as `$3` and so on; `$2` is the port.
  private init(_ making: String, _ words: [String]) throws {
    let parent = unsafe access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
    let number = Self.count.add(1, ordering: .relaxed).newValue
    folder = "\(parent)/fanout-pg-\(getpid())-\(number)"
    // "e" keeps it from the servers and from all else that tests start, so that nobody but the runner holds it open.
    guard let cleaner = unsafe popen(Self.shell(Self.cleaning, [folder]), "we") else {
      throw ServerFailure(description: "no shell can be started")
    }
    unsafe self.cleaner = cleaner
    port = try Self.freePort()
    place = "127.0.0.1:\(port)"
    address = "postgres://postgres@\(place)/postgres"
    try run("\(making)\n\(Self.starting)", ["\(port)"] + words)
  }

  deinit { stop() }

  /// Ends it for good. Nothing is left of it when this returns.
  package func stop() {
    isStopped.withLock { isStopped in
      if !isStopped { unsafe pclose(cleaner) }
      isStopped = true
    }
  }

  /// Ends all its processes at once: connections break, and the next start has to recover from the log.
  package func crash() throws {
    try run("$as pg_ctl stop -m immediate -w -t 60")
  }

  /// Starts it again after a crash, on the same port and with the same data.
  package func start() throws {
    try run(Self.starting)
  }

  /// Stops all its processes in their tracks: connections stay, and are answered no more.
  package func freeze() throws { try run("\(Self.signalling)\nsignal STOP") }
  package func thaw() throws { try run("\(Self.signalling)\nsignal CONT") }

  /// Has it let nobody in any more, and stop when the last connection ends.
  package func beginToStop() throws {
    try run("$as pg_ctl stop -m smart -W")
  }

  /// Makes a standby the primary.
  package func promote() throws {
    try run("$as pg_ctl promote -w -t 60")
  }

  // MARK: Shell

  /// A server may not run as root, so root runs it as `postgres`. Its statements must not wait for each other longer than tests do.
  private static let making = """
    \(makingFolder)
    $as initdb --auth=trust --no-sync -E UTF8 --locale=C -U postgres
    printf '%s' "$3" >"$PGDATA/pg_hba.conf"
    cat >>"$PGDATA/postgresql.conf" <<END
    port = $2
    listen_addresses = '127.0.0.1'
    unix_socket_directories = ''
    fsync = off
    shared_buffers = 128MB
    max_connections = 500
    max_wal_size = 512MB
    max_parallel_workers_per_gather = 0
    deadlock_timeout = 100ms
    END
    if [ -n "$4" ]; then
      cp "$4" "$PGDATA/server.key"
      cp "$5" "$PGDATA/server.crt"
      chmod 600 "$PGDATA/server.key"
      [ "$(id -u)" != 0 ] || chown postgres "$PGDATA/server.key" "$PGDATA/server.crt"
      echo 'ssl = on' >>"$PGDATA/postgresql.conf"
    fi
    """

  private static let following = """
    \(makingFolder)
    $as pg_basebackup -h 127.0.0.1 -p "$3" -U postgres -D "$PGDATA" -R -X stream -c fast --no-sync
    echo "port = $2" >>"$PGDATA/postgresql.conf"
    """

  private static let makingFolder = """
    mkdir -m 700 "$folder"
    [ "$(id -u)" != 0 ] || chown postgres "$folder"
    """

  /// A function that sends a signal to the server and the processes of its connections.
  private static let signalling = """
    signal() {
      set -- "$1" "$(head -1 "$PGDATA/postmaster.pid")"
      kill -"$1" "$2" $(cat "/proc/$2/task/$2/children")
    }
    """

  private static let starting = """
    $as pg_ctl start -w -t 120 -l "$folder/log"
    """

  private static let cleaning = """
    \(signalling)
    trap '' HUP INT TERM
    read -r line
    server=$(head -1 "$PGDATA/postmaster.pid") || server=
    if [ -n "$server" ]; then
      kill -QUIT "$server"
      # It may be frozen.
      signal CONT
      while kill -0 "$server"; do sleep 0.05; done
    fi
    rm -rf "$folder"
    """

  private static func shell(_ script: String, _ words: [String]) -> String {
    // None of the words holds a quote.
    """
    exec >/dev/null 2>&1
    set -- \(words.map { "'\($0)'" }.joined(separator: " "))
    folder=$1 PGDATA=$1/data PATH=\(programs):$PATH as=
    export PGDATA
    [ "$(id -u)" != 0 ] || as="runuser -u postgres --"
    \(script)
    """
  }

  /// Not `Process`: its end is noticed by the closing of a socket, which a server would inherit and keep open.
  private func run(_ script: String, _ words: [String] = []) throws {
    let status = unsafe system(Self.shell("set -e; cd /\n\(script)", [folder] + words) + "\n")
    if status != 0 { throw ServerFailure(description: "PostgreSQL in \(folder): status \(status) of: \(script)") }
  }

  /// A port below those that the system gives to outgoing connections: one of them could take the place of a crashed server.
  private static func freePort() throws -> UInt16 {
    for _ in 0..<100 {
      let port = UInt16.random(in: 16_000..<32_000)
      if isFree(port) { return port }
    }
    throw ServerFailure(description: "there is no free port")
  }

  private static func isFree(_ port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    address.sin_port = in_port_t(port).bigEndian
    return unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe bind(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }
}
