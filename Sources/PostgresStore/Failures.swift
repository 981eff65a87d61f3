internal import CPostgres
internal import FanoutStore

/// Makes of what the server said what callers can act on. Details and hints are left out: they quote stored values.
enum Failure {
  static func error(sqlState: String, message: String) -> StoreError {
    let code = code(of: sqlState)
    let what =
      switch code {
      case .busy: "PostgreSQL gave up a statement that stood in another's way"
      case .overdue: "PostgreSQL gave up a statement, which took too long or was cancelled"
      case .unavailable: "PostgreSQL can't serve at the moment"
      case .refusedValue: "PostgreSQL refused a value"
      case .corrupt: "the data of PostgreSQL are damaged"
      default: "PostgreSQL refused a statement"
      }
    // Messages about values of a wrong form quote them.
    let reason = sqlState.hasPrefix("22") ? "" : ": \(message)"
    let remedy =
      switch sqlState {
      case "42P01", "42703":
        ". Check the search_path of role and address, and the role's USAGE of the schema; fanout migrate makes missing tables"
      case "53100": ". Free some space on its disk"
      case "53300": ". Raise max_connections or the limit of the role or database, or use fewer --writers"
      case "25006": ". It is a standby, or default_transaction_read_only is on"
      // So PostgreSQL calls it, too, when it may not open a file.
      case "42501" where !message.hasPrefix("permission denied"): ". Check the server's disks and its log"
      case "42501":
        ". Deploy/postgres-roles.sql grants what workers and readers need; who migrates must own the schema or be "
          + "granted CREATE on it"
      default: ""
      }
    return StoreError(code, "\(what)\(reason) (SQLSTATE \(sqlState))\(remedy)", nativeCode: number(sqlState))
  }

  /// The connection broke. `reason` is libpq's, which never quotes a password.
  static func lost(_ reason: String) -> StoreError {
    StoreError(.unavailable, "the connection to PostgreSQL is lost: \(oneLine(reason))", nativeCode: number("08006"))
  }

  /// A commit that not all nodes have finished. What it wrote will be there; repeating it waits for that, and changes nothing.
  static var unfinishedCommit: StoreError {
    StoreError(
      .unavailable, "a node of the Citus cluster did not confirm a commit; it is repeated", nativeCode: number("08007"))
  }

  static func cannotConnect(_ reason: String, mayPass: Bool) -> StoreError {
    StoreError(
      mayPass ? .unavailable : .cannotOpen,
      "can't connect to PostgreSQL: \(oneLine(reason)). Check the address of --store, and that the server runs and lets this "
        + "user in.", nativeCode: number("08001"))
  }

  /// The five characters of a SQLSTATE, read as a number with 36 digits.
  static func number(_ sqlState: String) -> Int { Int(sqlState, radix: 36) ?? 0 }

  /// A deadlock or a serialization failure: the same transaction, begun again, will succeed.
  static func isConflict(_ error: StoreError) -> Bool {
    error.nativeCode == number("40P01") || error.nativeCode == number("40001")
  }

  static func code(of sqlState: String) -> StoreError.Code {
    switch sqlState {
    // Serialization failure, deadlock, lock timeout, too long in a transaction, idle or not, or with a snapshot.
    case "40001", "40P01", "55P03", "25P03", "25P04", "72000": .busy
    // Statement timeout, or cancellation.
    case "57014": .overdue
    // A server that became a standby, or was set read-only.
    case "25006": .unavailable
    case "XX001", "XX002": .corrupt
    default:
      switch sqlState.prefix(2) {
      // Connection, resources, intervention of an operator, system errors, lost or unfinished transactions.
      case "08", "53", "57", "58", "40": .unavailable
      // Data of a wrong form, a broken constraint, beyond a limit, not in the view that it was written to, and what somebody's trigger
      // raised.
      case "22", "23", "54", "44", "P0": .refusedValue
      default: .refused
      }
    }
  }

  private static func oneLine(_ text: String) -> String {
    text.split(separator: "\n").map { line in
      String(line.drop { $0 == " " || $0 == "\t" })
    }.joined(separator: "; ")
  }
}
