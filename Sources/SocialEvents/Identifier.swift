/// What a kind of identifier allows (SPEC 1 and 2).
public protocol IdentifierKind: Sendable {
  /// The word for it in error messages, such as "user".
  static var name: String { get }
  /// Whether an identifier of white space alone is allowed.
  static var mayBeBlank: Bool { get }
}

public enum UserKind: IdentifierKind {
  public static var name: String { "user" }
  public static var mayBeBlank: Bool { false }
}
public enum PostKind: IdentifierKind {
  public static var name: String { "post" }
  public static var mayBeBlank: Bool { false }
}
public enum EventKind: IdentifierKind {
  public static var name: String { "id" }
  public static var mayBeBlank: Bool { true }
}

/// A user (SPEC 1).
public typealias UserID = Identifier<UserKind>
/// A post, unique only within its author (SPEC 1).
public typealias PostID = Identifier<PostKind>
/// An event (SPEC 2). A UUIDv7 is recommended.
public typealias EventID = Identifier<EventKind>

/// An opaque id: 1 to 128 bytes of UTF-8 without control characters; users and posts are also not only white space (SPEC 1).
///
/// Two ids are the same when their bytes are the same. `String` would also call "é" in its two Unicode spellings equal, which
/// would make one user of two, so equality, order and hash here go by the bytes.
public struct Identifier<Kind: IdentifierKind>: Sendable {
  public let string: String

  /// The most bytes that an id may have.
  public static var maximumLength: Int { 128 }

  /// Checks the byte rules of SPEC 1.
  /// - Throws: `InvalidEvent` with reason `.invalidIdentifier`, saying which rule the id breaks.
  public init(_ string: String) throws(InvalidEvent) {
    if let fault = Self.fault(of: string) {
      throw InvalidEvent(.invalidIdentifier, "\(Kind.name) \(fault)")
    }
    self.string = string
  }

  /// For an id whose bytes are known to obey the rules, such as one read back from a store.
  package init(unchecked string: String) {
    self.string = string
  }

  /// Checks the byte rules of SPEC 1 on bytes that are known to be UTF-8.
  /// - Parameter member: what the error calls the id.
  @inline(__always)
  init(utf8 bytes: Span<UInt8>, member: StaticString) throws(InvalidEvent) {
    if let fault = Self.fault(of: bytes) {
      throw InvalidEvent(.invalidIdentifier, "\(member) \(fault)")
    }
    self.string = String(utf8: bytes)
  }

  /// The rule that `string` breaks, or nil.
  static func fault(of string: String) -> String? { fault(of: string.utf8.span) }

  @inline(__always)
  private static func fault(of bytes: Span<UInt8>) -> String? {
    // Ids of letters, digits and punctuation, nearly all there are, are done after one pass over their bytes.
    if 1...maximumLength ~= bytes.count && bytes.isGraphicASCII { return nil }
    return rareFault(of: bytes)
  }

  private static func rareFault(of bytes: Span<UInt8>) -> String? {
    if bytes.isEmpty { return "is empty" }
    if bytes.count > maximumLength { return "is \(bytes.count) bytes long, \(maximumLength) are allowed" }
    var blank = true
    for scalar in String(utf8: bytes).unicodeScalars {
      let value = scalar.value
      if value < 0x20 || (0x7F...0x9F).contains(value) { return "holds a control character" }
      if blank && !scalar.properties.isWhitespace { blank = false }
    }
    return blank && !Kind.mayBeBlank ? "is only white space" : nil
  }
}

extension Identifier: Hashable, Comparable {
  public static func == (a: Self, b: Self) -> Bool {
    // Different strings have different bytes. Equal ones have the same bytes if they are ASCII, as nearly all are; others
    // may be two spellings of one text.
    a.string == b.string && (a.string.utf8Span.isKnownASCII || a.string.utf8.elementsEqual(b.string.utf8))
  }
  public static func < (a: Self, b: Self) -> Bool {
    // The standard library compares ASCII by its bytes, and faster than this could.
    if a.string.utf8Span.isKnownASCII && b.string.utf8Span.isKnownASCII { return a.string < b.string }
    return a.string.utf8.lexicographicallyPrecedes(b.string.utf8)
  }
  public func hash(into hasher: inout Hasher) {
    unsafe string.utf8.span.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    hasher.combine(0xFF as UInt8)
  }
}

extension Identifier: CustomStringConvertible {
  public var description: String { string }
}
