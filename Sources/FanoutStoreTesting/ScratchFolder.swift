private import Glibc

/// A new empty folder, which is removed with all files in it when the value is no longer used.
///
/// In shared memory if there is any: a store that waits for the disk at every commit would make tests wait for it too.
package final class ScratchFolder: Sendable {
  package let path: String

  package init() throws {
    let parent = unsafe access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
    var template = Array("\(parent)/fanout-XXXXXX".utf8CString)
    let made = unsafe template.withUnsafeMutableBufferPointer { buffer in
      unsafe buffer.baseAddress.map { unsafe mkdtemp($0) != nil } ?? false
    }
    guard made else { throw ConformanceFailure("can't make a folder in \(parent)") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    if let folder = unsafe opendir(path) {
      while let entry = unsafe readdir(folder) {
        let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
          unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        // Fails for "." and "..", which stay.
        _ = unsafe unlink("\(path)/\(name)")
      }
      _ = unsafe closedir(folder)
    }
    _ = unsafe rmdir(path)
  }

  package func file(_ name: String) -> String { "\(path)/\(name)" }
}
