internal import CPostgres
package import FanoutStore
private import Glibc

/// An open connection. Not Sendable: whoever holds it is the only one to use it.
@safe
package final class Connection {
  private let handle: OpaquePointer
  /// How long the server may be silent while a statement is under way, in seconds; nil: for ever.
  private let patience: Int?
  /// Whether it was silent for longer.
  private var isGivenUp = false
  /// The names of prepared statements, by their SQL.
  private var names: [String: String] = [:]
  private var inTransaction = false
  /// How large the tables were when plans were made.
  private var plannedSizes: [Int64] = []
  /// Whether Citus has distributed the tables.
  let isDistributed: Bool
  private let warnings = Warnings()

  /// - Parameters:
  ///   - address: a URI or a connection string as libpq understands them; what is not in it is taken from the environment.
  ///   - reconnecting: whether the same address has worked before, so that any failure is one that may pass.
  ///   - isDistributed: whether Citus has distributed the tables.
  ///   - patience: for how long the server may be silent while a statement is under way, in seconds; nil: for ever.
  package init(
    _ address: String, reconnecting: Bool = false, isDistributed: Bool = false, patience: Int? = nil
  ) throws(StoreError) {
    try Connecting.checkForm(of: address)
    guard let connection = unsafe Connecting.open(address) else {
      throw Failure.cannotConnect("no memory", mayPass: true)
    }
    guard unsafe PQstatus(connection) == CONNECTION_OK else {
      let reason = Connecting.withoutSecrets(unsafe String(cString: PQerrorMessage(connection)), of: address)
      let mayPass = unsafe reconnecting || Connecting.mayPass(connection, address)
      unsafe PQfinish(connection)
      throw Failure.cannotConnect(reason, mayPass: mayPass)
    }
    unsafe handle = connection
    self.isDistributed = isDistributed
    self.patience = patience
    // Notices, such as that a table exists already, would go to stderr.
    _ = unsafe PQsetNoticeReceiver(
      connection,
      { warnings, notice in
        guard let warnings = unsafe warnings, let notice = unsafe notice else { return }
        unsafe Unmanaged<Warnings>.fromOpaque(warnings).takeUnretainedValue().add(
          unsafe fanout_pq_primary_message(notice).map { unsafe String(cString: $0) } ?? "")
      }, Unmanaged.passUnretained(warnings).toOpaque())
  }

  deinit {
    unsafe PQfinish(handle)
  }

  /// Whether the server has said that it can't serve, or not so. Behind the same address may be another by now, as after a failover,
  /// or another configuration.
  private(set) var isSpent = false
  /// Whether the connection is known to be broken.
  var isLost: Bool { unsafe isGivenUp || PQstatus(handle) != CONNECTION_OK }
  /// Whether a transaction is open, in whatever state.
  var isIdle: Bool { unsafe PQtransactionStatus(handle) == PQTRANS_IDLE }

  // MARK: Statements

  /// The text of a statement that is another one when the tables are distributed.
  func choose(_ sql: @autoclosure () -> String, onCitus: @autoclosure () -> String) -> String {
    isDistributed ? onCitus() : sql()
  }

  /// Runs one or more statements without parameters, in one transaction if there is none.
  package func execute(_ sql: String) throws(StoreError) {
    _ = try unsafe rows(PQsendQuery(handle, sql))
  }

  /// Runs a statement that returns one number.
  package func integer(_ sql: String) throws(StoreError) -> Int {
    try query("SELECT (\(sql))::bigint").first.map { Int($0.integer(0)) } ?? 0
  }

  /// Runs a statement that returns lines of text.
  package func text(_ sql: String) throws(StoreError) -> String {
    try query(sql).map { $0.text(0) }.joined(separator: "\n")
  }

  /// Runs a statement that is prepared at its first use.
  @discardableResult
  package func query(_ sql: String, _ parameters: Parameter...) throws(StoreError) -> Rows {
    try query(sql, parameters)
  }
  func query(_ sql: String, _ parameters: [Parameter]) throws(StoreError) -> Rows {
    try retrying { () throws(StoreError) in try run(sql, parameters) }
  }

  /// Runs a statement that changes rows.
  /// - Returns: how many.
  @discardableResult
  package func change(_ sql: String, _ parameters: Parameter...) throws(StoreError) -> Int {
    try retrying { () throws(StoreError) in try run(sql, parameters) }.changes
  }

  private func run(_ sql: String, _ parameters: [Parameter]) throws(StoreError) -> Rows {
    let name = try prepare(sql)
    var bytes: [UInt8] = []
    var ends: [(start: Int, end: Int?)] = []
    for parameter in parameters {
      let start = bytes.count
      ends.append((start, parameter.encode(&bytes) ? bytes.count : nil))
    }
    // A value without bytes needs an address all the same, or it would be NULL.
    bytes.append(0)
    let formats = [Int32](repeating: 1, count: parameters.count)
    let lengths = ends.map { Int32(truncatingIfNeeded: ($0.end ?? $0.start) - $0.start) }
    let isSent = unsafe bytes.withUnsafeBufferPointer { buffer in
      unsafe buffer.withMemoryRebound(to: CChar.self) { buffer in
        let values = unsafe ends.map { range in
          range.end == nil ? nil : unsafe buffer.baseAddress.map { unsafe $0 + range.start }
        }
        return unsafe PQsendQueryPrepared(handle, name, Int32(parameters.count), values, lengths, formats, 1)
      }
    }
    return try rows(isSent)
  }

  private func prepare(_ sql: String) throws(StoreError) -> String {
    if let known = names[sql] { return known }
    let name = "s\(names.count)"
    _ = try unsafe rows(PQsendPrepare(handle, name, sql, 0, nil))
    names[sql] = name
    return name
  }

  /// Has plans made anew when a table has outgrown them.
  ///
  /// A plan is made once and kept. One made while a table was next to nothing may read all of it for each row of a batch, and
  /// the server makes it anew only when it has analyzed the table, which may be minutes and millions of rows later.
  func keepPlansFit() throws(StoreError) {
    // The coordinator makes plans anew each time, and nodes look after theirs.
    if isDistributed { return }
    let sizes = try query(Self.tableSizes).map { $0.integer(0) }
    let isFit =
      sizes.count == plannedSizes.count && zip(sizes, plannedSizes).allSatisfy { $0 <= 2 * $1 + Self.smallTable }
    if isFit { return }
    try execute("DISCARD PLANS")
    plannedSizes = sizes
  }

  /// Reading this many bytes costs about as much as finding a row by an index.
  private static let smallTable: Int64 = 16_384
  private static let tableSizes =
    "SELECT pg_relation_size(t::regclass) FROM unnest('{edge,post,feed_row,feed_trim}'::text[]) t"

  /// The answer to what was sent: that to the last statement, or the first error, which may be followed by another that says less.
  /// - Parameter isSent: what libpq said of the sending; 0 is a failure.
  private func rows(_ isSent: Int32) throws(StoreError) -> Rows {
    var result: OpaquePointer?
    while isSent != 0 {
      do throws(StoreError) {
        try waitForAnswer()
      } catch {
        unsafe PQclear(result)
        throw error
      }
      guard let next = unsafe PQgetResult(handle) else { break }
      if unsafe PQresultStatus(result) == PGRES_FATAL_ERROR, unsafe result != nil {
        unsafe PQclear(next)
      } else {
        unsafe PQclear(result)
        unsafe result = next
      }
    }
    return try unsafe rows(result)
  }

  /// libpq waits for ever: a server that is frozen, or has hung, still keeps its connections.
  private func waitForAnswer() throws(StoreError) {
    while unsafe PQisBusy(handle) != 0 {
      var input = unsafe pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
      switch unsafe poll(&input, 1, patience.map { Int32($0) * 1000 } ?? -1) {
      case 0:
        isGivenUp = true
        throw Failure.lost("the server has not answered for \(patience ?? 0) s")
      // What is wrong with a connection that is closed, `PQgetResult` says.
      case 1...: if unsafe PQconsumeInput(handle) == 0 { return }
      default: if errno != EINTR { return }
      }
    }
  }

  /// - Parameter result: becomes the returned object's.
  @unsafe private func rows(_ result: OpaquePointer?) throws(StoreError) -> Rows {
    let isCommitUnfinished = warnings.takeUnfinishedCommit()
    guard let result = unsafe result else { throw Failure.lost(unsafe String(cString: PQerrorMessage(handle))) }
    switch unsafe PQresultStatus(result) {
    case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
      let rows = unsafe Rows(result)
      if isCommitUnfinished { throw Failure.unfinishedCommit }
      return rows
    default: break
    }
    defer { unsafe PQclear(result) }
    guard let state = unsafe fanout_pq_sqlstate(result) else {
      throw Failure.lost(unsafe String(cString: PQresultErrorMessage(result)))
    }
    let message = unsafe fanout_pq_primary_message(result).map { unsafe String(cString: $0) }
    let error = Failure.error(sqlState: unsafe String(cString: state), message: message ?? "")
    if error.code == .unavailable || error.code == .refused { isSpent = true }
    throw error
  }

  // MARK: Transactions

  /// Runs `body` in one transaction, again and again while it fails by a deadlock or a serialization failure.
  func transaction<T>(_ body: () throws(StoreError) -> T) throws(StoreError) -> T {
    try retrying { () throws(StoreError) in
      try execute("BEGIN")
      inTransaction = true
      defer { inTransaction = false }
      do throws(StoreError) {
        let result = try body()
        try execute("COMMIT")
        return result
      } catch {
        if !isLost && !isIdle { _ = try? execute("ROLLBACK") }
        throw error
      }
    }
  }

  /// Runs `body`, which is one statement or transaction, again while it fails because others stood in its way.
  ///
  /// Statements lock rows in the order of their keys, so this is for what PostgreSQL itself, or somebody else's statement,
  /// brings about.
  func retrying<T>(_ body: () throws(StoreError) -> T) throws(StoreError) -> T {
    if inTransaction { return try body() }
    var tries = 0
    while true {
      do throws(StoreError) {
        return try body()
      } catch {
        tries += 1
        guard Failure.isConflict(error), tries < 10, !isLost else { throw error }
        usleep(UInt32.random(in: 500...(2000 << UInt32(min(tries, 6)))))
      }
    }
  }
}

/// What the server warned of during a statement. Called by libpq on the thread that runs it.
private final class Warnings {
  private var hasUnfinishedCommit = false

  /// Citus commits on all nodes before it answers. Where the second phase fails it only warns, and finishes it a minute later:
  /// until then others don't see what was written there, so SPEC 6 does not hold yet.
  func add(_ message: String) {
    if message.hasPrefix("failed to commit transaction") { hasUnfinishedCommit = true }
  }

  func takeUnfinishedCommit() -> Bool {
    defer { hasUnfinishedCommit = false }
    return hasUnfinishedCommit
  }
}
