import SocialEvents
import Testing

/// What both decoders say about one text, in a form that can be compared and printed.
struct Verdicts: Equatable {
  let decoder: String
  let reference: String

  init(_ bytes: [UInt8], type: EventType?) {
    if let type {
      let record = Record(headers: Record.binary(type: type.rawValue, "").headers, value: bytes)
      decoder = Self.verdict { () throws(InvalidEvent) in try record.decoded().assertion }
      reference = Self.verdict { () throws(InvalidEvent) in try ReferenceDecoder.data(type, bytes) }
    } else {
      decoder = Self.verdict { () throws(InvalidEvent) in try EventDecoder.decodeStructured(bytes.span) }
      reference = Self.verdict { () throws(InvalidEvent) in try ReferenceDecoder.structured(bytes) }
    }
  }

  var agree: Bool { decoder.utf8.elementsEqual(reference.utf8) }

  private static func verdict<T>(_ decode: () throws(InvalidEvent) -> T) -> String {
    do throws(InvalidEvent) {
      return "\(try decode())"
    } catch {
      return error.reason.rawValue
    }
  }
}

struct CorpusTests {
  @Test("the corpus is there, with every type in both modes")
  func isComplete() {
    #expect(Corpus.files.count > 150)
    #expect(Set(Corpus.files.filter { $0.isValid }.compactMap { $0.type }).count == EventType.allCases.count)
  }

  @Test("each file is accepted or refused as its name says, as Foundation does it", arguments: Corpus.files)
  func agrees(_ file: Corpus.File) {
    let verdicts = Verdicts(file.bytes, type: file.type)
    let isRefused = InvalidEvent.Reason(rawValue: verdicts.decoder) != nil
    #expect(isRefused != file.isValid)
    #expect(verdicts.agree, "decoder: \(verdicts.decoder), reference: \(verdicts.reference)")
  }
}
