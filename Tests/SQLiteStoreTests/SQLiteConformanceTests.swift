import FanoutStore
import FanoutStoreTesting
import SQLiteStore
import Testing

@Suite("SQLiteStore")
struct SQLiteConformanceTests {
  @Test("conforms", arguments: StoreConformance.checks)
  func conforms(check: StoreConformance.Check) throws {
    let folder = try ScratchFolder()
    var stores = 0
    try check.run { settings in
      stores += 1
      return try SQLiteStore(path: folder.file("store\(stores).db"), access: .readWrite, settings: settings)
    }
  }
}
