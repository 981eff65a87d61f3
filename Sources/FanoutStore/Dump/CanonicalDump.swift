internal import SocialEvents

/// The canonical dump of SPEC 9: every view as sorted lines of JSON, and their digests.
public struct CanonicalDump: ~Copyable {
  private var sorter: LineSorter

  /// Reads all views of `store`.
  /// - Throws: `StoreError`, or `LineSorter.Failure` when the temporary files for sorting can't be written.
  public init(of store: borrowing some Store) throws {
    var sorter = LineSorter()
    var line: [UInt8] = []
    try store.export { row in
      line.removeAll(keepingCapacity: true)
      row.appendCanonicalLine(to: &line)
      try sorter.add(line)
    }
    self.sorter = sorter
  }

  /// Calls `body` with each line, sorted by bytes, without its line feed.
  public consuming func forEachLine(_ body: (ArraySlice<UInt8>) throws -> Void) throws {
    try sorter.forEachSorted(body)
  }

  /// The digests of the dump: of all its lines, and of each view's.
  public consuming func digest() throws -> Digest {
    var whole = SHA256()
    var edges = SHA256()
    var feeds = SHA256()
    var feedback = SHA256()
    var lines = Digest.Lines()
    func add(_ line: ArraySlice<UInt8>, to hash: inout SHA256) {
      unsafe line.withUnsafeBytes { unsafe hash.update($0) }
      hash.update("\n")
    }
    try sorter.forEachSorted { line in
      add(line, to: &whole)
      if line.starts(with: ViewRow.edgePrefix) {
        lines.edges += 1
        add(line, to: &edges)
      } else if line.starts(with: ViewRow.feedbackPrefix) {
        lines.feedback += 1
        add(line, to: &feedback)
      } else {
        lines.feeds += 1
        add(line, to: &feeds)
      }
    }
    return Digest(
      whole: hexadecimal(whole.finish()), edges: hexadecimal(edges.finish()), feeds: hexadecimal(feeds.finish()),
      feedback: hexadecimal(feedback.finish()), lines: lines)
  }
}

/// SHA-256 digests, in lower-case hexadecimal, of the canonical dump and of its lines of each view.
public struct Digest: Hashable, Sendable {
  /// How many lines each view has.
  public struct Lines: Hashable, Sendable {
    public var edges = 0
    public var feeds = 0
    public var feedback = 0
    public init() {}
  }

  public let whole: String
  public let edges: String
  public let feeds: String
  public let feedback: String
  public let lines: Lines
}

package func hexadecimal(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  text.reserveCapacity(bytes.count * 2)
  for byte in bytes {
    text.append(digits[Int(byte >> 4)])
    text.append(digits[Int(byte & 15)])
  }
  return String(decoding: text, as: UTF8.self)
}

extension ViewRow {
  static let edgePrefix = Array(#"{"view":"edge""#.utf8)
  static let feedbackPrefix = Array(#"{"view":"feedback""#.utf8)

  /// Appends the row as SPEC 9 writes it, without a line feed.
  public func appendCanonicalLine(to line: inout [UInt8]) {
    func member(_ name: StaticString, _ value: String) {
      line.append(UInt8(ascii: ","))
      raw(name)
      appendJSONString(value, to: &line)
    }
    func member(_ name: StaticString, _ value: Int64) {
      line.append(UInt8(ascii: ","))
      raw(name)
      line.append(contentsOf: String(value).utf8)
    }
    func raw(_ text: StaticString) {
      text.withUTF8Buffer { unsafe line.append(contentsOf: $0) }
    }
    switch self {
    case .edge(let edge):
      raw(#"{"view":"edge""#)
      member(#""kind":"#, edge.kind.name)
      member(#""actor":"#, edge.actor.string)
      if let post = edge.post {
        member(#""author":"#, edge.recipient.string)
        member(#""post":"#, post.string)
      } else {
        member(#""target":"#, edge.recipient.string)
      }
    case .feed(let user, let item):
      raw(#"{"view":"feed""#)
      member(#""user":"#, user.string)
      member(#""author":"#, item.post.author.string)
      member(#""post":"#, item.post.id.string)
      member(#""publishedAt":"#, item.publishedAt.microseconds)
    case .feedback(let user, let entry):
      raw(#"{"view":"feedback""#)
      member(#""user":"#, user.string)
      member(#""type":"#, entry.edge.kind.name)
      member(#""from":"#, entry.edge.actor.string)
      if let post = entry.edge.post {
        member(#""author":"#, entry.edge.recipient.string)
        member(#""post":"#, post.string)
      }
      member(#""time":"#, entry.time.microseconds)
      member(#""event":"#, entry.event.string)
      raw(entry.isSeen ? #","seen":true"# : #","seen":false"#)
      if let extra = entry.extra {
        raw(#","extra":"#)
        // A line break between its tokens would end the line; JSON calls a space the same.
        appendJSONOnOneLine(extra, to: &line)
      }
    }
    line.append(UInt8(ascii: "}"))
  }
}
