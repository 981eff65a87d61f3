public import FanoutStore

/// A set of records and the settings of a store to apply them to; always the same for the same seed.
public struct History: Sendable {
  public let seed: UInt64
  public let settings: StoreSettings
  public let records: [Record]
}

extension History: CustomStringConvertible {
  public var description: String {
    let own = settings.includesOwnPosts ? "with" : "without"
    return (["history \(seed), feed limit \(settings.feedLimit), \(own) own posts:"] + records.map { "  \($0)" })
      .joined(separator: "\n")
  }
}
