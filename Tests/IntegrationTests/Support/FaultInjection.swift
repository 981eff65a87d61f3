/// Faults of the real command's processes, made by a library that is loaded before those it uses (`Tests/FaultInjection`).
enum FaultInjection {
  static let preload = ["LD_PRELOAD": Fanout.products + "/libFaultInjection.so"]

  /// Variables that have a process note the points that it passes in a file, one a line, and end as by kill -9 when
  /// it has come to one of them.
  /// - Parameter point: nil: it lives on.
  static func crash(at point: CrashPoint?, trail: String) -> [String: String] {
    var variables = preload
    variables["CRASH_TRAIL"] = trail
    if let point { variables["CRASH_AT"] = "\(point.passing) \(point.name)" }
    return variables
  }
}

/// A point on the command's boundary to store and Kafka.
struct CrashPoint: Hashable, CustomStringConvertible {
  /// As in "before commit facts".
  let name: String
  /// At which time of passing, counted from 1.
  let passing: Int

  var description: String { "\(name) (\(passing))" }

  /// The points of a trail, in the order in which they were passed.
  static func all(in trail: String) -> [CrashPoint] {
    var passings: [Substring: Int] = [:]
    return trail.split(separator: "\n").map { name in
      passings[name, default: 0] += 1
      return CrashPoint(name: String(name), passing: passings[name, default: 0])
    }
  }
}
