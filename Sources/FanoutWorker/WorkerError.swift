/// Why a worker or a replay ended other than by being asked to.
public struct WorkerError: Error, Sendable, CustomStringConvertible {
  public let description: String

  public init(_ description: String) {
    self.description = description
  }
}
