internal import CRdKafka

/// Adds headers to a record that is being sent, straight from memory the caller holds.
///
/// librdkafka copies each one. A list is always passed whole, because single header entries and a bad partition make
/// `rd_kafka_produceva` free them twice (#4627).
@safe public struct HeaderWriter: ~Copyable {
  let pointer: OpaquePointer

  init?(capacity: Int) {
    guard let pointer = unsafe rd_kafka_headers_new(capacity) else { return nil }
    unsafe self.pointer = pointer
  }

  deinit { unsafe rd_kafka_headers_destroy(pointer) }

  /// Gives the list to librdkafka, which destroys it with the message.
  consuming func release() { discard self }

  /// A header whose name is known at compile time.
  public func add(_ name: StaticString, _ value: Span<UInt8>?) {
    if name.hasPointerRepresentation {
      unsafe name.utf8Start.withMemoryRebound(to: CChar.self, capacity: name.utf8CodeUnitCount) {
        unsafe add($0, name.utf8CodeUnitCount, value)
      }
    } else {
      add(name.description, value)
    }
  }

  /// A header; a null value differs from an empty one.
  public func add(_ name: String, _ value: Span<UInt8>?) {
    var name = name
    name.withUTF8 { bytes in
      unsafe bytes.withMemoryRebound(to: CChar.self) { unsafe add($0.baseAddress, $0.count, value) }
    }
  }

  /// A header whose value is text.
  public func add(_ name: StaticString, _ text: String) {
    add(name, text.utf8.span)
  }

  private func add(_ name: UnsafePointer<CChar>?, _ length: Int, _ value: Span<UInt8>?) {
    guard let value else {
      unsafe _ = rd_kafka_header_add(pointer, name, length, nil, 0)
      return
    }
    unsafe value.withNonNullBytes { start, count in
      unsafe _ = rd_kafka_header_add(pointer, name, length, start, count)
    }
  }
}

extension Span<UInt8> {
  /// The bytes, with a pointer that isn't null even when there are none: to librdkafka null means "no value".
  func withNonNullBytes<R>(_ body: (UnsafeRawPointer, Int) -> R) -> R {
    unsafe withUnsafeBytes { bytes in
      if let start = bytes.baseAddress { return unsafe body(start, bytes.count) }
      var nothing: UInt8 = 0
      return unsafe Swift.withUnsafePointer(to: &nothing) { unsafe body(UnsafeRawPointer($0), 0) }
    }
  }
}
