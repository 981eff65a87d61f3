/// Why a text is not JSON, and at which byte.
struct JSONFault: Error {
  let problem: String
  let position: Int

  init(_ problem: StaticString, at position: Int) {
    self.problem = problem.description
    self.position = position
  }
}

/// One value in a JSON text: its type and the place of its bytes.
struct JSONToken {
  enum Kind: UInt8 {
    /// There was no such value.
    case absent
    case null, `false`, `true`, number, string, array, object
  }

  var kind = Kind.absent
  /// Whether a string holds escapes, so that its bytes are not yet its text.
  var isEscaped = false
  /// A string's bytes lie between its quotes; any other value's are all of it.
  var start: Int32 = 0
  var end: Int32 = 0

  var range: Range<Int> { Int(start)..<Int(end) }
}

/// Walks over a JSON text (RFC 8259) in one pass, byte by byte, and refuses what is not JSON, also where nobody looks.
///
/// It builds nothing: values come back as the place of their bytes. The text is handed to every call, because a span can't
/// be stored; texts are shorter than 2³¹ bytes.
struct JSONScanner {
  /// The deepest nesting of arrays and objects, the outermost counted. The same as Foundation's.
  static var deepestNesting: Int { 512 }

  /// The next byte to look at.
  var position = 0

  /// Skips a byte order mark, which RFC 8259 lets a reader ignore.
  mutating func skipByteOrderMark(_ bytes: Span<UInt8>) {
    if bytes.count >= 3 && bytes[0] == 0xEF && bytes[1] == 0xBB && bytes[2] == 0xBF { position = 3 }
  }

  @inline(__always)
  mutating func skipWhiteSpace(_ bytes: Span<UInt8>) {
    while position < bytes.count {
      let byte = bytes[position]
      // One comparison settles nearly all bytes: nothing above the space is white space.
      guard byte <= 0x20, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return }
      position += 1
    }
  }

  /// The byte after any white space, not consumed; nil at the end.
  @inline(__always)
  mutating func peek(_ bytes: Span<UInt8>) -> UInt8? {
    skipWhiteSpace(bytes)
    return position < bytes.count ? bytes[position] : nil
  }

  /// Nothing but white space may follow the outermost value.
  mutating func finish(_ bytes: Span<UInt8>) throws(JSONFault) {
    if peek(bytes) != nil { throw JSONFault("something follows the end of the JSON text", at: position) }
  }

  // MARK: Objects, member by member

  /// Consumes the "{" of an object and tells whether a member follows; the end of an empty object is consumed too.
  @inline(__always)
  mutating func enterObject(_ bytes: Span<UInt8>) throws(JSONFault) -> Bool {
    position += 1
    guard peek(bytes) == UInt8(ascii: "}") else { return true }
    position += 1
    return false
  }

  /// Consumes a member's name and the colon, and stops at its value.
  @inline(__always)
  mutating func memberName(_ bytes: Span<UInt8>) throws(JSONFault) -> JSONToken {
    guard peek(bytes) == UInt8(ascii: "\"") else { throw JSONFault("a member's name was expected", at: position) }
    let name = try string(bytes)
    guard peek(bytes) == UInt8(ascii: ":") else { throw JSONFault("a colon was expected", at: position) }
    position += 1
    skipWhiteSpace(bytes)
    return name
  }

  /// Consumes what follows a member's value and tells whether another member follows.
  @inline(__always)
  mutating func hasNextMember(_ bytes: Span<UInt8>) throws(JSONFault) -> Bool {
    let byte = peek(bytes)
    guard byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") else {
      throw JSONFault("a comma or the end of the object was expected", at: position)
    }
    position += 1
    return byte == UInt8(ascii: ",")
  }

  // MARK: Values

  /// Consumes the value at `position`, where no white space is.
  /// - Parameter depth: how many arrays and objects are around it.
  @inline(__always)
  mutating func value(_ bytes: Span<UInt8>, depth: Int) throws(JSONFault) -> JSONToken {
    guard position < bytes.count else { throw JSONFault("the text ends where a value was expected", at: position) }
    if bytes[position] == UInt8(ascii: "\"") { return try string(bytes) }
    return try otherValue(bytes, depth: depth)
  }

  @inline(never)
  private mutating func otherValue(_ bytes: Span<UInt8>, depth: Int) throws(JSONFault) -> JSONToken {
    let first = bytes[position]
    guard first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else { return try scalar(bytes) }
    var token = JSONToken(kind: first == UInt8(ascii: "{") ? .object : .array)
    token.start = Int32(truncatingIfNeeded: position)
    try skipContainer(bytes, depth: depth)
    token.end = Int32(truncatingIfNeeded: position)
    return token
  }

  private mutating func scalar(_ bytes: Span<UInt8>) throws(JSONFault) -> JSONToken {
    guard position < bytes.count else { throw JSONFault("the text ends where a value was expected", at: position) }
    var token = JSONToken()
    token.start = Int32(truncatingIfNeeded: position)
    switch bytes[position] {
    case UInt8(ascii: "\""): return try string(bytes)
    case UInt8(ascii: "t"):
      try literal(bytes, "true")
      token.kind = .true
    case UInt8(ascii: "f"):
      try literal(bytes, "false")
      token.kind = .false
    case UInt8(ascii: "n"):
      try literal(bytes, "null")
      token.kind = .null
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      try number(bytes)
      token.kind = .number
    default: throw JSONFault("a value was expected", at: position)
    }
    token.end = Int32(truncatingIfNeeded: position)
    return token
  }

  private mutating func literal(_ bytes: Span<UInt8>, _ word: StaticString) throws(JSONFault) {
    var at = position
    for byte in word.description.utf8 {
      guard at < bytes.count, bytes[at] == byte else { throw JSONFault("a value was expected", at: position) }
      at += 1
    }
    position = at
  }

  /// Checks a number's grammar. Its size doesn't matter: no member that an event needs is a number.
  private mutating func number(_ bytes: Span<UInt8>) throws(JSONFault) {
    if bytes[position] == UInt8(ascii: "-") { position += 1 }
    if position < bytes.count && bytes[position] == UInt8(ascii: "0") {
      position += 1
    } else {
      try digits(bytes)
    }
    if position < bytes.count && bytes[position] == UInt8(ascii: ".") {
      position += 1
      try digits(bytes)
    }
    if position < bytes.count && bytes[position] | 0x20 == UInt8(ascii: "e") {
      position += 1
      if position < bytes.count && (bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-")) {
        position += 1
      }
      try digits(bytes)
    }
  }

  private mutating func digits(_ bytes: Span<UInt8>) throws(JSONFault) {
    let start = position
    while position < bytes.count && bytes[position] &- UInt8(ascii: "0") <= 9 { position += 1 }
    if position == start { throw JSONFault("a digit was expected", at: position) }
  }

  /// Consumes an array or object. It keeps one bit for each level instead of calling itself, so that no text can exhaust
  /// the stack.
  private mutating func skipContainer(_ bytes: Span<UInt8>, depth outer: Int) throws(JSONFault) {
    var isObject = InlineArray<8, UInt64>(repeating: 0)
    var depth = outer
    while true {
      // A value starts here.
      let first = position < bytes.count ? bytes[position] : 0
      if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
        if depth >= Self.deepestNesting { throw JSONFault("the nesting is too deep", at: position) }
        let bit: UInt64 = 1 << UInt64(depth & 63)
        let opensObject = first == UInt8(ascii: "{")
        if opensObject { isObject[depth >> 6] |= bit } else { isObject[depth >> 6] &= ~bit }
        depth += 1
        position += 1
        let next = peek(bytes)
        if next != (opensObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
          if opensObject { _ = try memberName(bytes) }
          continue
        }
        position += 1
        depth -= 1
      } else {
        _ = try scalar(bytes)
      }
      // A value has ended: so may any number of the containers around it.
      while true {
        if depth == outer { return }
        let level = depth - 1
        let inObject = isObject[level >> 6] & (1 << UInt64(level & 63)) != 0
        let next = peek(bytes)
        if next == UInt8(ascii: ",") {
          position += 1
          if inObject { _ = try memberName(bytes) } else { skipWhiteSpace(bytes) }
          break
        }
        guard next == (inObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
          throw JSONFault("a comma or the end of the array or object was expected", at: position)
        }
        position += 1
        depth -= 1
      }
    }
  }
}
