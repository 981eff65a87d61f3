public import SocialEvents

/// An event as it lies in the log: with the timestamp that its Kafka record got, which the clock rule of SPEC 2 goes by.
public struct Record: Hashable, Sendable {
  public let event: Event
  /// Nil: the record carries no timestamp.
  public let recorded: Timestamp?

  public init(_ event: Event, recorded: Timestamp?) {
    self.event = event
    self.recorded = recorded
  }
}

extension Record: CustomStringConvertible {
  /// One line, for the report of a failing history.
  public var description: String {
    let recorded = recorded.map { " recorded \($0.microseconds)" } ?? ""
    return "\(event.type.rawValue) \(what) id '\(event.id)' time \(event.time.microseconds)\(recorded)"
  }

  private var what: String {
    func name(_ edge: Edge) -> String {
      "'\(edge.actor)' -> '\(edge.recipient)'" + (edge.post.map { " / '\($0)'" } ?? "")
    }
    func name(_ post: Post) -> String { "'\(post.author)' / '\(post.id)'" }
    switch event.assertion {
    case .present(let edge, let silent, let extra):
      return name(edge) + (silent ? " silent" : "") + (extra.map { " extra \($0)" } ?? "")
    case .absent(let edge): return name(edge)
    case .published(let post, let at): return name(post) + (at.map { " publishedAt \($0.microseconds)" } ?? "")
    case .deleted(let post): return name(post)
    case .seen(let user, let upTo): return "'\(user)' upTo \(upTo.microseconds)"
    }
  }
}
