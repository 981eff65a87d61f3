/// Writes events as lines for `emit` (SPEC 2).
enum Lines {
  /// - Parameters:
  ///   - time: a full time, or one of today's made-up day as in "10:00".
  static func event(_ type: String, _ data: String, id: String, time: String) -> String {
    let time = time.count == 5 ? "2024-05-01T\(time):00Z" : time
    return #"{"specversion":"1.0","id":"\#(id)","source":"/test","type":"\#(type)","time":"\#(time)","data":\#(data)}"#
  }

  static func follow(_ actor: String, _ target: String, id: String, time: String = "10:00") -> String {
    event("follow", #"{"actor":"\#(actor)","target":"\#(target)"}"#, id: id, time: time)
  }

  static func unfollow(_ actor: String, _ target: String, id: String, time: String = "10:00") -> String {
    event("unfollow", #"{"actor":"\#(actor)","target":"\#(target)"}"#, id: id, time: time)
  }

  /// An event of an actor about a post: like, unlike, favorite or unfavorite.
  static func on(
    _ type: String, _ actor: String, _ author: String, _ post: String, id: String, time: String = "10:00"
  ) -> String {
    event(type, #"{"actor":"\#(actor)","author":"\#(author)","post":"\#(post)"}"#, id: id, time: time)
  }

  static func post(_ author: String, _ post: String, id: String, time: String = "10:00") -> String {
    event("post-published", #"{"author":"\#(author)","post":"\#(post)"}"#, id: id, time: time)
  }

  static func delete(_ author: String, _ post: String, id: String, time: String = "10:00") -> String {
    event("post-deleted", #"{"author":"\#(author)","post":"\#(post)"}"#, id: id, time: time)
  }

  /// A line of the dump (SPEC 9).
  static func followEdge(_ actor: String, _ target: String) -> String {
    #"{"view":"edge","kind":"follow","actor":"\#(actor)","target":"\#(target)"}"#
  }
}

extension [String] {
  var joinedLines: String { map { $0 + "\n" }.joined() }
}
