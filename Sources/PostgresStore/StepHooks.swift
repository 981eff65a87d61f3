internal import FanoutStore

/// The boundaries between the steps of SPEC 6, for tests that stop one writer there while another goes on.
package enum Step: Hashable, Sendable {
  /// `commitFacts` has committed.
  case factsCommitted
  /// The facts that a view will be written by have been read.
  case factsRead
  /// A view was written, and is not visible to others yet.
  case derivedNotCommitted
  /// A view was written and committed; what it assumed has not been looked at again.
  case committedNotChecked
}

/// What tests put into a store. Nothing outside this package can.
package struct StepHooks: Sendable {
  /// Called at each boundary, on the thread that writes.
  package var reached: (@Sendable (Step) -> Void)?
  /// Step 3 of SPEC 6. Switched off only to show that tests notice it.
  package var checksAfterCommit = true

  package init(reached: (@Sendable (Step) -> Void)? = nil, checksAfterCommit: Bool = true) {
    self.reached = reached
    self.checksAfterCommit = checksAfterCommit
  }
}

extension Connection {
  /// Runs a statement in a transaction of its own.
  ///
  /// That is what PostgreSQL does with it anyway, without the two round trips more that a boundary before the commit costs.
  func alone<T>(_ hooks: StepHooks, _ statement: () throws(StoreError) -> T) throws(StoreError) -> T {
    guard let reached = hooks.reached else { return try retrying(statement) }
    return try transaction { () throws(StoreError) in
      let result = try statement()
      reached(.derivedNotCommitted)
      return result
    }
  }
}
