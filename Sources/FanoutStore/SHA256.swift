private import CCrypto

/// SHA-256 by libcrypto, incrementally.
package struct SHA256: ~Copyable {
  private var context = SHA256_CTX()

  package init() {
    _ = unsafe SHA256_Init(&context)
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    _ = unsafe SHA256_Update(&context, bytes.baseAddress, bytes.count)
  }

  package mutating func update(_ string: String) {
    var string = string
    string.withUTF8 { unsafe update(UnsafeRawBufferPointer($0)) }
  }

  /// The 32 bytes of the digest.
  package consuming func finish() -> [UInt8] {
    var context = self.context
    return unsafe [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      _ = unsafe SHA256_Final(buffer.baseAddress, &context)
      count = 32
    }
  }

  /// The first 16 bytes of the digest, as two big-endian numbers.
  fileprivate consuming func finishShort() -> (UInt64, UInt64) {
    var context = self.context
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    unsafe withUnsafeMutableBytes(of: &words) { buffer in
      _ = unsafe SHA256_Final(buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), &context)
    }
    return (UInt64(bigEndian: words.0), UInt64(bigEndian: words.1))
  }
}

extension StoreKey {
  /// The key of the bytes of `string`.
  init(hashing string: String) {
    var hash = SHA256()
    hash.update(string)
    (high, low) = hash.finishShort()
  }
}
