/// Why a store could not do what it was asked.
public struct StoreError: Error, Sendable, CustomStringConvertible {
  /// What kind of failure it is. More may be added.
  public struct Code: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Another process holds a lock for longer than the store waits.
    public static let busy = Code(rawValue: "busy")
    /// The store did not get done in the time that a call may take. Less at a time may help.
    public static let overdue = Code(rawValue: "overdue")
    /// The disk is full, read-only or failing, or the server is away.
    public static let unavailable = Code(rawValue: "unavailable")
    /// The store's schema is missing, older or newer than this program's, or made for other settings.
    public static let schema = Code(rawValue: "schema")
    /// The store can't be opened: a wrong path, no permission, not a database.
    public static let cannotOpen = Code(rawValue: "cannot-open")
    /// The stored data are damaged.
    public static let corrupt = Code(rawValue: "corrupt")
    /// The store refused a value: the same call without it would succeed.
    public static let refusedValue = Code(rawValue: "refused-value")
    /// The store refused a statement, whatever its values: somebody has to do something, as to grant a privilege.
    public static let refused = Code(rawValue: "refused")
  }

  public let code: Code
  /// What was being done, what the store said, and where possible what to do. Holds no stored values.
  public let message: String
  /// The store's own code, such as SQLite's extended result code; 0 if there is none.
  public let nativeCode: Int

  public init(_ code: Code, _ message: String, nativeCode: Int = 0) {
    self.code = code
    self.message = message
    self.nativeCode = nativeCode
  }

  /// Whether the same call may succeed later without anybody doing anything to the data or the configuration.
  public var isTransient: Bool { code == .busy || code == .overdue || code == .unavailable }

  public var description: String { message }
}
