internal import FanoutStore

/// Where the slices of a large fan-out go: to the tasks topic for all workers to share, or to a list to be done here.
protocol SliceHandover: Sendable {
  /// Returns when the slices are safe: from then on the events that caused them may be acknowledged.
  /// - Parameter trace: the trace context of a slice's cause, if it has one.
  /// - Returns: feed rows that were new, if the slices are done already.
  func handOver(_ slices: [FanoutSlice], trace: (FanoutSlice) -> String?) throws -> Int
}
