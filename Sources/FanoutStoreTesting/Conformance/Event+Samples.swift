internal import FanoutStore
package import SocialEvents

extension Timestamp {
  /// A time near the one that samples count from; a time that tests can tell from zero.
  package static func sample(_ offset: Int64) -> Timestamp { Timestamp(microseconds: 1_785_000_000_000_000 + offset) }
}

extension Subject {
  static func user(_ id: String) -> Subject { .user(UserID(unchecked: id)) }
  static func post(_ author: String, _ post: String) -> Subject { .post(.sample(author, post)) }
}

extension Post {
  package static func sample(_ author: String, _ post: String) -> Post {
    Post(author: UserID(unchecked: author), id: PostID(unchecked: post))
  }
}

/// Events in few words. `at` counts microseconds from `Timestamp.sample(0)`.
extension Event {
  private static func sample(_ id: String, _ at: Int64, _ assertion: Assertion) -> Event {
    Event(id: EventID(unchecked: id), source: "test", time: .sample(at), assertion: assertion)
  }

  private static func edge(_ kind: EdgeKind, _ actor: String, _ recipient: String, _ post: String?) -> Edge {
    Edge(
      kind: kind, actor: UserID(unchecked: actor), recipient: UserID(unchecked: recipient),
      post: post.map(PostID.init(unchecked:)))
  }

  package static func follow(
    _ actor: String, _ target: String, at: Int64, id: String = "e", silent: Bool = false, extra: String? = nil
  ) -> Event {
    sample(id, at, .present(edge(.follow, actor, target, nil), silent: silent, extra: extra))
  }

  package static func unfollow(_ actor: String, _ target: String, at: Int64, id: String = "e") -> Event {
    sample(id, at, .absent(edge(.follow, actor, target, nil)))
  }

  package static func like(
    _ actor: String, _ author: String, _ post: String, at: Int64, id: String = "e", silent: Bool = false,
    extra: String? = nil
  ) -> Event {
    sample(id, at, .present(edge(.like, actor, author, post), silent: silent, extra: extra))
  }

  package static func unlike(
    _ actor: String, _ author: String, _ post: String, at: Int64, id: String = "e"
  ) -> Event {
    sample(id, at, .absent(edge(.like, actor, author, post)))
  }

  package static func favorite(
    _ actor: String, _ author: String, _ post: String, at: Int64, id: String = "e", silent: Bool = false
  ) -> Event {
    sample(id, at, .present(edge(.favorite, actor, author, post), silent: silent, extra: nil))
  }

  package static func unfavorite(
    _ actor: String, _ author: String, _ post: String, at: Int64, id: String = "e"
  ) -> Event {
    sample(id, at, .absent(edge(.favorite, actor, author, post)))
  }

  package static func published(
    _ author: String, _ post: String, at: Int64, publishedAt: Int64? = nil, id: String = "e"
  ) -> Event {
    sample(id, at, .published(.sample(author, post), publishedAt: publishedAt.map(Timestamp.sample)))
  }

  package static func deleted(_ author: String, _ post: String, at: Int64 = 0, id: String = "e") -> Event {
    sample(id, at, .deleted(.sample(author, post)))
  }

  package static func seen(_ user: String, upTo: Int64, at: Int64 = 0, id: String = "e") -> Event {
    sample(id, at, .seen(UserID(unchecked: user), upTo: .sample(upTo)))
  }
}
