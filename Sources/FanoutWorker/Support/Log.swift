/// Where the worker's messages go, as lines of text.
public struct Log: Sendable {
  public enum Level: Int, CaseIterable, Sendable, Comparable {
    case debug, info, warning, error

    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

    public init?(name: String) {
      guard let level = Level.allCases.first(where: { "\($0)" == name }) else { return nil }
      self = level
    }
  }

  /// Messages below it are dropped.
  public let level: Level
  private let sink: @Sendable (Level, String) -> Void

  public init(level: Level = .info, sink: @escaping @Sendable (Level, String) -> Void) {
    self.level = level
    self.sink = sink
  }

  /// Drops everything.
  public static let silent = Log(level: .error) { _, _ in }

  public func debug(_ message: @autoclosure () -> String) { write(.debug, message) }
  public func info(_ message: @autoclosure () -> String) { write(.info, message) }
  public func warning(_ message: @autoclosure () -> String) { write(.warning, message) }
  public func error(_ message: @autoclosure () -> String) { write(.error, message) }

  private func write(_ level: Level, _ message: () -> String) {
    if level >= self.level { sink(level, message()) }
  }
}
