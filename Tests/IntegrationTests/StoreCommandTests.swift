import Foundation
import Testing

@Suite("Commands about the store (SPEC 8)", .crowded)
struct StoreCommandTests {
  /// Posts that all have one time: pages must not lose one of them at their edge (atproto#2199).
  private func filledStore() async throws -> Deployment {
    let deployment = try await Deployment.start(on: .embedded)
    var lines: [String] = []
    for number in 0..<7 {
      lines.append(Lines.follow("f\(number)", "ann/b%c", id: "a\(number)"))
      lines.append(Lines.follow("ann/b%c", "t\(number)", id: "b\(number)"))
      // A combining character at the beginning: it and the cursor's separator are one character, but two bytes.
      let post = "\u{308}p/\(number)"
      lines.append(Lines.post("t\(number)", post, id: "c\(number)"))
      lines.append(Lines.on("like", "ann/b%c", "t\(number)", post, id: "d\(number)"))
      lines.append(Lines.on("favorite", "ann/b%c", "t\(number)", post, id: "e\(number)"))
      lines.append(Lines.on("like", "f\(number)", "ann/b%c", "q%2F", id: "f\(number)"))
      lines.append(Lines.on("favorite", "f\(number)", "ann/b%c", "q%2F", id: "g\(number)"))
    }
    try await deployment.emit(lines: lines.joinedLines)
    try await deployment.catchUp()
    return deployment
  }

  @Test("show pages through every list to its end, in every page size, in text and in JSON")
  func paging() async throws {
    let deployment = try await filledStore()
    let lists: [(words: [String], count: Int)] = [
      (["followers", "ann/b%c"], 7), (["following", "ann/b%c"], 7), (["liked", "ann/b%c"], 7),
      (["favorites", "ann/b%c"], 7), (["likers", "ann/b%c", "q%2F"], 7), (["favoriters", "ann/b%c", "q%2F"], 7),
      (["feed", "ann/b%c"], 7), (["feedback", "ann/b%c"], 21),
    ]
    for (words, count) in lists {
      let whole = try await deployment.run(["show"] + words + ["--limit", "1000"])
      #expect(whole.lines.count == count, "\(words)")
      #expect(Set(whole.lines).count == count, "\(words): each once")
      #expect(whole.error == "")
      let json = try await deployment.run(["show"] + words + ["--limit", "1000", "--json"])
      for size in [1, 3, 7] where size > 1 || count < 10 {
        #expect(try await textPages(deployment, words, size) == whole.lines.map(String.init), "\(words) by \(size)")
        #expect(try await jsonPages(deployment, words, size) == json.lines.map(String.init), "\(words) by \(size)")
      }
    }
  }

  private func textPages(_ deployment: Deployment, _ words: [String], _ size: Int) async throws -> [String] {
    var lines: [String] = []
    var after: [String] = []
    while lines.count < 100 {
      let page = try await deployment.run(["show"] + words + ["--limit", "\(size)"] + after)
      #expect(page.lines.count <= size)
      lines += page.lines.map(String.init)
      // more: --after 'CURSOR'
      let parts = page.error.split(separator: "'")
      guard page.error.hasPrefix("more: --after"), parts.count == 3 else { break }
      after = ["--after", String(parts[1])]
    }
    return lines
  }

  private func jsonPages(_ deployment: Deployment, _ words: [String], _ size: Int) async throws -> [String] {
    var lines: [String] = []
    var after: [String] = []
    while lines.count < 100 {
      let page = try await deployment.run(["show"] + words + ["--json", "--limit", "\(size)"] + after)
      guard let last = page.lines.last else { break }
      lines += page.lines.map(String.init)
      let object = try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any]
      after = ["--after", try #require(object?["cursor"] as? String)]
    }
    return lines
  }

  @Test("show of a user that nobody knows is empty; a cursor of another list is refused")
  func oddities() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    try await deployment.run(["migrate"])
    for list in ["feed", "feedback", "followers", "following", "liked", "favorites"] {
      #expect(try await deployment.run(["show", list, "nobody"]).output == "")
      if list != "followers" && list != "following" {
        let wrong = try await deployment.run(["show", list, "nobody", "--after", "nonsense"], expecting: 2)
        #expect(wrong.error.contains("--after"))
      }
    }
  }

  @Test("digest names each view, also as JSON, and agrees with the dump")
  func digest() async throws {
    let deployment = try await filledStore()
    let lines = try await deployment.dump()
    let text = try await deployment.run(["digest"]).lines
    #expect(text.count == 4)
    #expect(text.first?.hasPrefix(sha256(ofLines: lines.map { Array($0.utf8) })) == true)
    let json = try await deployment.run(["digest", "--json"]).lines.map {
      try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
    }
    #expect(json.map { $0["view"] as? String } == ["all", "edges", "feeds", "feedback"])
    for (object, line) in zip(json, text) { #expect(object["sha256"] as? String == String(line.prefix(64))) }
    #expect(json.first?["lines"] as? Int == lines.count)
    let parts = json.dropFirst().compactMap { $0["lines"] as? Int }
    #expect(parts.reduce(0, +) == lines.count)
  }

  @Test("migrate makes a store once; repeating it does nothing")
  func migrate() async throws {
    let folder = try TestFolder()
    let store = "sqlite:" + folder.file("new.db")
    #expect(try await Fanout.run(["migrate", "--store", store], in: folder).output.hasPrefix("made "))
    #expect(try await Fanout.run(["migrate", "--store", store], in: folder).output.contains("already"))
  }

  @Test("a store that was made for another feed limit is refused, by every command that writes")
  func otherFeedLimit() async throws {
    let deployment = try await Deployment.start(on: .embedded)
    try await deployment.run(["migrate", "--feed-limit", "20"])
    for words in [["worker", "--until-caught-up"], ["replay"], ["migrate"], ["digest"]] {
      let result = try await deployment.run(words + ["--feed-limit", "30"], expecting: 1)
      #expect(result.error.contains("made for feed limit 20") && result.error.contains("30"), "\(result.error)")
    }
    try await deployment.catchUp()
  }

  @Test("a store that is missing, or is none, is named and not made by reading", arguments: ["show", "dump", "digest"])
  func missing(command: String) async throws {
    let folder = try TestFolder()
    let path = folder.file("missing.db")
    let words = command == "show" ? ["show", "feed", "ann"] : [command]
    let result = try await Fanout.run(words + ["--store", "sqlite:\(path)"], in: folder, expecting: 1)
    #expect(result.error.contains(path) && result.error.contains("--store"), "\(result.error)")
    #expect(!FileManager.default.fileExists(atPath: path))
    let text = try folder.write("text.db", "this is not a database, though long enough to be looked at as one\n")
    let wrong = try await Fanout.run(words + ["--store", "sqlite:\(text)"], in: folder, expecting: 1)
    #expect(wrong.error.contains("not a database"), "\(wrong.error)")
  }
}
