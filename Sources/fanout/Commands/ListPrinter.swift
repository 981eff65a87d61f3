internal import FanoutStore
internal import SocialEvents

/// An entry of a list, for people and for machines.
struct Entry {
  let fields: [String]
  let json: JSONLine
  let cursor: String
}

/// Prints a page of a list: aligned with a title on a terminal, plain lines with tabs otherwise, or JSON.
struct ListPrinter {
  let isJSON: Bool

  /// - Parameter items: one more than `limit` if there are more.
  func print<Item>(_ items: [Item], limit: Int, title: String, entry: (Item) -> Entry) {
    let output = Output()
    let page = items.prefix(limit).map(entry)
    if isJSON {
      for entry in page { output.line(entry.json.member("cursor", entry.cursor).closed) }
      return
    }
    if Output.isTerminal {
      output.line(title)
      for line in Self.aligned(page.map(\.fields)) { output.line("  " + line) }
      if page.isEmpty { output.line("  (nothing)") }
    } else {
      for entry in page { output.line(entry.fields.joined(separator: "\t")) }
    }
    output.flush()
    if items.count > limit, let last = page.last { note("more: --after '\(last.cursor)'") }
  }

  static func aligned(_ rows: [[String]]) -> [String] {
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
    return rows.map { row in
      row.enumerated().map { index, field in index == row.count - 1 ? field : Help.pad(field, widths[index]) }
        .joined(separator: "  ")
    }
  }

  static func feedback(_ entry: FeedbackEntry) -> Entry {
    let edge = entry.edge
    var json = JSONLine().member("id", entry.id).member("type", edge.kind.name).member("from", edge.actor.string)
    var fields = [entry.time.description, edge.kind.name, edge.actor.string]
    if let post = edge.post {
      json = json.member("author", edge.recipient.string).member("post", post.string)
      fields.append(post.string)
    }
    json = json.member("time", entry.time.description).member("event", entry.event.string).member("seen", entry.isSeen)
    if let extra = entry.extra { json = json.raw("extra", extra) }
    fields.append(entry.isSeen ? "seen" : "new")
    return Entry(fields: fields, json: json, cursor: entry.id)
  }
}
