package import FanoutStore

/// A value for a statement, in PostgreSQL's binary format. The statement says its type with a cast, such as `$1::uuid[]`.
package struct Parameter {
  /// Appends the bytes, or returns false for NULL.
  let encode: (inout [UInt8]) -> Bool

  private init(_ encode: @escaping (inout [UInt8]) -> Bool) {
    self.encode = encode
  }

  /// `bigint`; nil is NULL.
  static func integer(_ value: Int64?) -> Parameter {
    Parameter { bytes in
      guard let value else { return false }
      bytes.append(bigEndian: value)
      return true
    }
  }
  static func integer(_ value: Int?) -> Parameter { integer(value.map(Int64.init)) }

  /// `boolean`.
  static func flag(_ value: Bool) -> Parameter {
    Parameter {
      $0.append(value ? 1 : 0)
      return true
    }
  }

  /// `uuid`.
  static func key(_ key: StoreKey) -> Parameter {
    Parameter {
      $0.append(key)
      return true
    }
  }

  /// `text`.
  static func text(_ text: String) -> Parameter {
    Parameter {
      $0.append(contentsOf: text.utf8)
      return true
    }
  }

  // MARK: Arrays

  /// The element types in use, by the OIDs that PostgreSQL has given them for ever.
  private enum ElementType: UInt32 {
    case boolean = 16
    case smallint = 21
    case bigint = 20
    case text = 25
    case uuid = 2950
  }

  /// `uuid[]`, of what `key` makes of each element.
  package static func keys<T>(_ list: some Collection<T>, _ key: @escaping (T) -> StoreKey) -> Parameter {
    array(list, .uuid) { $1.append(element: key($0)) }
  }
  static func keys(_ list: some Collection<StoreKey>) -> Parameter { keys(list) { $0 } }

  /// `bigint[]`; nil is NULL.
  package static func integers<T>(_ list: some Collection<T>, _ value: @escaping (T) -> Int64?) -> Parameter {
    array(list, .bigint) { $1.append(element: value($0)) }
  }

  /// `smallint[]`.
  package static func smallIntegers<T>(_ list: some Collection<T>, _ value: @escaping (T) -> Int) -> Parameter {
    array(list, .smallint) { $1.append(element: Int16(truncatingIfNeeded: value($0))) }
  }

  /// `boolean[]`.
  static func flags<T>(_ list: some Collection<T>, _ value: @escaping (T) -> Bool) -> Parameter {
    array(list, .boolean) { $1.append(element: value($0)) }
  }

  /// `text[]`; nil is NULL.
  package static func texts<T>(_ list: some Collection<T>, _ text: @escaping (T) -> String?) -> Parameter {
    array(list, .text) { $1.append(element: text($0)) }
  }

  /// The header of an array of one dimension, then each element after its length (array_recv in the server's sources).
  private static func array<T>(
    _ list: some Collection<T>, _ type: ElementType, _ append: @escaping (T, inout [UInt8]) -> Void
  ) -> Parameter {
    Parameter { bytes in
      bytes.append(bigEndian: Int32(list.isEmpty ? 0 : 1))
      bytes.append(bigEndian: Int32(1))
      bytes.append(bigEndian: Int32(bitPattern: type.rawValue))
      if list.isEmpty { return true }
      bytes.append(bigEndian: Int32(truncatingIfNeeded: list.count))
      bytes.append(bigEndian: Int32(1))
      for element in list { append(element, &bytes) }
      return true
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(bigEndian value: some FixedWidthInteger) {
    unsafe Swift.withUnsafeBytes(of: value.bigEndian) { unsafe append(contentsOf: $0) }
  }

  fileprivate mutating func append(_ key: StoreKey) {
    append(bigEndian: key.high)
    append(bigEndian: key.low)
  }

  fileprivate mutating func append(element key: StoreKey) {
    append(bigEndian: Int32(16))
    append(key)
  }

  fileprivate mutating func append(element value: Int64?) {
    guard let value else { return appendNull() }
    append(bigEndian: Int32(8))
    append(bigEndian: value)
  }

  fileprivate mutating func append(element value: Int16) {
    append(bigEndian: Int32(2))
    append(bigEndian: value)
  }

  fileprivate mutating func append(element value: Bool) {
    append(bigEndian: Int32(1))
    append(value ? 1 : 0)
  }

  fileprivate mutating func append(element text: String?) {
    guard let text else { return appendNull() }
    let bytes = text.utf8.span
    append(bigEndian: Int32(truncatingIfNeeded: bytes.count))
    unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }

  private mutating func appendNull() { append(bigEndian: Int32(-1)) }
}
