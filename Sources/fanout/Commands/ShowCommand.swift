package import FanoutStore
internal import SocialEvents

extension Option {
  static let limit = Option(name: "limit", placeholder: "N", help: "the most entries to print", standard: "20")
  static let after = Option(
    name: "after", placeholder: "CURSOR", help: "go on after this entry: the cursor that the page before ended with")
}

extension Command {
  private static let lists = ["feed", "feedback"] + Relation.allCases.map(\.rawValue)

  static let show = Command(
    name: "show", operands: "feed|feedback|followers|following|likers|liked|favoriters|favorites ID",
    summary: "print what a reader sees of a user or a post",
    details: """
      ID is a user. For likers and favoriters it is a post: AUTHOR POST, two words, or AUTHOR/POST.
      Feed and feedback come newest first. Lists of relations have a stable order without a meaning.
      """,
    options: [.store, .limit, .after, .json]
  ) { arguments in
    try arguments.expectOperands(2...3)
    let list = arguments.operands[0]
    guard lists.contains(list) else {
      throw UsageError("there is no list \"\(list)\"; choose from \(lists.joined(separator: ", "))")
    }
    let relation = Relation(rawValue: list)
    let subject = try subject(arguments.operands.dropFirst(), isPost: relation?.isOfPost ?? false)
    let limit = try arguments.number(.limit, in: 1...1_000_000)
    let store = try arguments.storeAddress().open(.readOnly, settings: nil)
    let printer = ListPrinter(isJSON: try arguments.flag(.json))
    let after = arguments.optional(.after)
    // One more than asked for tells whether there are more.
    switch (list, subject) {
    case ("feed", .user(let user)):
      let items = try store.feed(of: user, after: try after.map(Cursor.feedItem), limit: limit + 1)
      printer.print(items, limit: limit, title: "\(user)'s feed, newest first") { item in
        Entry(
          fields: [item.publishedAt.description, item.post.author.string, item.post.id.string],
          json: JSONLine().member("author", item.post.author.string).member("post", item.post.id.string)
            .member("publishedAt", item.publishedAt.description),
          cursor: Cursor.text(item))
      }
    case ("feedback", .user(let user)):
      let entries = try store.feedback(of: user, after: try after.map(Cursor.feedback), limit: limit + 1)
      let unread = try store.unreadCount(of: user)
      printer.print(entries, limit: limit, title: "\(user)'s feedback, newest first, \(unread) unread") { entry in
        ListPrinter.feedback(entry)
      }
    case (_, let subject):
      guard let relation else { throw UsageError("\(list) belongs to a user") }
      let entries = try store.relation(
        relation, of: subject, after: try after.map { try Cursor.subject($0, relation) }, limit: limit + 1)
      let count = try store.count(relation, of: subject)
      printer.print(entries, limit: limit, title: "\(count) \(list)") { entry in
        switch entry {
        case .user(let user):
          Entry(fields: [user.string], json: JSONLine().member("user", user.string), cursor: Cursor.text(entry))
        case .post(let post):
          Entry(
            fields: [post.author.string, post.id.string],
            json: JSONLine().member("author", post.author.string).member("post", post.id.string),
            cursor: Cursor.text(entry))
        }
      }
    }
    return .done
  }

  private static func subject(_ words: ArraySlice<String>, isPost: Bool) throws -> Subject {
    func user(_ text: String) throws -> UserID {
      do { return try UserID(text) } catch { throw UsageError("ID is no user: \(error.detail)") }
    }
    let words = Array(words)
    if !isPost {
      guard words.count == 1 else { throw UsageError("\"\(words[1])\" is one word too many: ID is a user here") }
      return .user(try user(words[0]))
    }
    let parts =
      words.count == 2 ? words : words[0].splitByBytes(at: "/", maxSplits: 1)
    guard parts.count == 2 else { throw UsageError("ID is a post here: AUTHOR POST, or AUTHOR/POST") }
    do {
      return .post(Post(author: try user(parts[0]), id: try PostID(parts[1])))
    } catch let error as InvalidEvent {
      throw UsageError("ID is no post: \(error.detail)")
    }
  }
}

/// Where the next page begins, as text: the parts joined by "/", with "%" and "/" in them written as "%25" and "%2F".
package enum Cursor {
  package static func text(_ item: FeedItem) -> String {
    join([String(item.publishedAt.microseconds), item.post.author.string, item.post.id.string])
  }

  package static func text(_ subject: Subject) -> String {
    switch subject {
    case .user(let user): join([user.string])
    case .post(let post): join([post.author.string, post.id.string])
    }
  }

  package static func feedItem(_ text: String) throws -> FeedItem {
    let parts = split(text)
    guard parts.count == 3, let time = Int64(parts[0]), let author = try? UserID(parts[1]),
      let post = try? PostID(parts[2])
    else { throw wrong(text) }
    return FeedItem(publishedAt: Timestamp(microseconds: time), post: Post(author: author, id: post))
  }

  package static func feedback(_ text: String) throws -> FeedbackPosition {
    guard let position = FeedbackPosition(id: text) else { throw wrong(text) }
    return position
  }

  package static func subject(_ text: String, _ relation: Relation) throws -> Subject {
    let parts = split(text)
    let isPost = relation.isByActor && relation.kind != .follow
    guard parts.count == (isPost ? 2 : 1), let user = try? UserID(parts[0]) else { throw wrong(text) }
    guard isPost else { return .user(user) }
    guard let post = try? PostID(parts[1]) else { throw wrong(text) }
    return .post(Post(author: user, id: post))
  }

  private static func wrong(_ text: String) -> UsageError {
    UsageError("--after: \"\(text)\" is no cursor of this list. Take the one that the page before ended with.")
  }

  private static func join(_ parts: [String]) -> String {
    parts.map { escape($0) }.joined(separator: "/")
  }

  private static func split(_ text: String) -> [String] { text.splitByBytes(at: "/").map(unescape) }

  // By bytes: "/" and a combining character after it are one `Character`.

  private static func escape(_ text: String) -> String {
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "%"): bytes += Array("%25".utf8)
      case UInt8(ascii: "/"): bytes += Array("%2F".utf8)
      default: bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func unescape(_ text: String) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), let code = rest.prefix(2).nilUnless(count: 2),
        let value = UInt8(String(decoding: code, as: UTF8.self), radix: 16)
      {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension String {
  /// The parts between the bytes of `separator`.
  func splitByBytes(at separator: Unicode.Scalar, maxSplits: Int = .max) -> [String] {
    utf8.split(separator: UInt8(ascii: separator), maxSplits: maxSplits, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
  }
}

extension ArraySlice {
  fileprivate func nilUnless(count wanted: Int) -> ArraySlice? { count == wanted ? self : nil }
}
