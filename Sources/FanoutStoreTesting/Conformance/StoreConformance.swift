public import FanoutStore
internal import SocialEvents

/// Everything that the `Store` protocol promises, as checks that any adapter can run in any test framework.
///
/// ```swift
/// @Test(arguments: StoreConformance.checks)
/// func conforms(check: StoreConformance.Check) throws {
///   try check.run { settings in try MyStore(emptyDatabase(), settings: settings) }
/// }
/// ```
public enum StoreConformance {
  /// Makes an empty store.
  public typealias MakeStore = (StoreSettings) throws -> any Store

  /// One promise, and the section of the SPEC that makes it.
  public struct Check: Sendable, CustomStringConvertible {
    public let name: String
    /// Such as "4" or "5, feed".
    public let section: String
    private let body: @Sendable (MakeStore) throws -> Void

    init(_ section: String, _ name: String, _ body: @escaping @Sendable (MakeStore) throws -> Void) {
      self.section = section
      self.name = name
      self.body = body
    }

    public var description: String { "SPEC \(section): \(name)" }

    /// - Parameter makeStore: makes an empty store; called once or several times.
    /// - Throws: `ConformanceFailure`, or what the store threw.
    public func run(makeStore: MakeStore) throws {
      var stores: [any Store] = []
      try body { settings in
        let store = try makeStore(settings)
        try expectEqual(store.settings, settings, "the settings of the store that was made")
        stores.append(store)
        return store
      }
      // Whatever the check was about, all ways of reading must agree in the end.
      for store in stores {
        for pageSize in [1, 3] { try ReadAudit.check(store, users: Self.users, pageSize: pageSize) }
      }
    }

    private static let users = ["a", "b", "c", "nobody"].map(UserID.init(unchecked:))
  }

  /// All checks.
  public static let checks: [Check] =
    factChecks + relationChecks + feedbackChecks + feedChecks + feedLimitChecks + sliceChecks + visibilityChecks
    + identifierChecks
}
