/// C objects that make up one array argument, destroyed together.
@safe final class OwnedPointers {
  private var pointers: [OpaquePointer?] = unsafe []
  private let destroy: (OpaquePointer) -> Void

  init(destroy: @escaping (OpaquePointer) -> Void) { unsafe self.destroy = destroy }

  deinit {
    for index in unsafe pointers.indices { if let pointer = unsafe pointers[index] { unsafe destroy(pointer) } }
  }

  func append(_ pointer: OpaquePointer) { unsafe pointers.append(pointer) }

  /// The array as a C call wants it.
  func withArray(_ body: (UnsafeMutablePointer<OpaquePointer?>?, Int) -> Void) {
    unsafe pointers.withUnsafeMutableBufferPointer { unsafe body($0.baseAddress, $0.count) }
  }
}
