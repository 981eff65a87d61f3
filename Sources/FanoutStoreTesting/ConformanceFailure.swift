/// What a store showed or did that the SPEC does not allow.
public struct ConformanceFailure: Error, CustomStringConvertible {
  public let description: String

  public init(_ description: String) {
    self.description = description
  }
}

func expect(_ holds: Bool, _ otherwise: @autoclosure () -> String) throws {
  if !holds { throw ConformanceFailure(otherwise()) }
}

func expectEqual<T: Equatable>(_ actual: T, _ expected: T, _ what: @autoclosure () -> String) throws {
  if actual != expected { throw ConformanceFailure("\(what()): expected \(expected), got \(actual)") }
}
