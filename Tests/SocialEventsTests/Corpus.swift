import Foundation
import SocialEvents
import Testing

/// The files in the folder Corpus: small records, plain and odd ones.
struct Corpus {
  struct File: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]
    /// The type of the event whose data object this is; nil for a structured event.
    let type: EventType?
    var isValid: Bool
    var testDescription: String { name }
  }

  /// In the order of their names, so that a fuzzing seed means the same everywhere.
  static let files: [File] = {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus")
    let names = FileManager.default.enumerator(atPath: folder.path())?.compactMap { $0 as? String } ?? []
    return names.filter { $0.hasSuffix(".json") }.sorted().compactMap { name in
      guard let data = try? Data(contentsOf: folder.appending(path: name)) else { return nil }
      let parts = name.split(separator: "/")
      let type = parts.first == "data" && parts.count > 1 ? EventType(rawValue: String(parts[1])) : nil
      let isValid = !name.contains("invalid")
      return File(name: name, bytes: Array(data), type: type, isValid: isValid)
    }
  }()
}
