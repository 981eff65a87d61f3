internal import CPostgres
package import FanoutStore
package import SocialEvents

/// What a statement returned: rows in PostgreSQL's binary format. Rows and columns count from 0.
@safe
package final class Rows {
  private let result: OpaquePointer
  let count: Int

  /// - Parameter result: becomes this object's to clear.
  @unsafe init(_ result: OpaquePointer) {
    unsafe self.result = result
    count = unsafe Int(PQntuples(result))
  }

  deinit {
    unsafe PQclear(result)
  }

  /// What `row` makes of each row.
  package func map<T>(_ row: (Row) -> T) -> [T] {
    var all: [T] = []
    all.reserveCapacity(count)
    for index in 0..<count { all.append(row(Row(self, index))) }
    return all
  }

  /// The first row, or nil if there is none.
  var first: Row? { count > 0 ? Row(self, 0) : nil }

  /// Rows changed by an INSERT, UPDATE or DELETE.
  var changes: Int {
    // "returns a string containing the number of rows affected by the SQL statement" (PQcmdTuples).
    guard let text = unsafe PQcmdTuples(result) else { return 0 }
    return unsafe Int(String(cString: text)) ?? 0
  }

  fileprivate func isNull(_ row: Int, _ column: Int) -> Bool {
    unsafe PQgetisnull(result, Int32(row), Int32(column)) != 0
  }

  fileprivate func bytes<T>(_ row: Int, _ column: Int, _ body: (RawSpan) -> T) -> T {
    let count = unsafe Int(PQgetlength(result, Int32(row), Int32(column)))
    let start = unsafe PQgetvalue(result, Int32(row), Int32(column))
    return unsafe body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count).bytes)
  }
}

/// A row of a result. A value of another type or length than asked for, which a statement never returns, reads as 0 or empty.
package struct Row {
  private let rows: Rows
  private let row: Int

  fileprivate init(_ rows: Rows, _ row: Int) {
    self.rows = rows
    self.row = row
  }

  func isNull(_ column: Int) -> Bool { rows.isNull(row, column) }

  /// A `smallint`, `integer` or `bigint`.
  package func integer(_ column: Int) -> Int64 {
    rows.bytes(row, column) { bytes in
      switch bytes.byteCount {
      case 8: bytes.integer(at: 0)
      case 4: Int64(Int32(truncatingIfNeeded: bytes.bigEndian(at: 0, count: 4)))
      case 2: Int64(Int16(truncatingIfNeeded: bytes.bigEndian(at: 0, count: 2)))
      default: 0
      }
    }
  }

  func timestamp(_ column: Int) -> Timestamp { Timestamp(microseconds: integer(column)) }

  func flag(_ column: Int) -> Bool {
    rows.bytes(row, column) { $0.byteCount == 1 && $0.bigEndian(at: 0, count: 1) != 0 }
  }

  func text(_ column: Int) -> String {
    rows.bytes(row, column) { bytes in
      unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
  }

  package func user(_ column: Int) -> UserID { UserID(unchecked: text(column)) }

  /// A `uuid`.
  package func key(_ column: Int) -> StoreKey {
    rows.bytes(row, column) { bytes in
      guard bytes.byteCount == 16 else { return .lowest }
      return StoreKey(high: bytes.bigEndian(at: 0, count: 8), low: bytes.bigEndian(at: 8, count: 8))
    }
  }

  /// A `bigint[]` without NULLs.
  func integers(_ column: Int) -> [Int64] {
    rows.bytes(row, column) { bytes in
      // Dimensions, flags, type; for each dimension its size and lower bound; then length and bytes of each element.
      guard bytes.byteCount >= 20, bytes.bigEndian(at: 0, count: 4) == 1 else { return [] }
      let count = Int(bytes.bigEndian(at: 12, count: 4))
      guard bytes.byteCount == 20 + 12 * count else { return [] }
      return (0..<count).map { bytes.integer(at: 24 + 12 * $0) }
    }
  }
}

extension RawSpan {
  fileprivate func bigEndian(at offset: Int, count: Int) -> UInt64 {
    var value: UInt64 = 0
    for index in offset..<offset + count {
      value = value << 8 | UInt64(unsafe unsafeLoad(fromByteOffset: index, as: UInt8.self))
    }
    return value
  }

  fileprivate func integer(at offset: Int) -> Int64 { Int64(bitPattern: bigEndian(at: offset, count: 8)) }
}
