import FanoutStore
import FanoutStoreTesting
import Testing

@Suite("MemoryStore")
struct MemoryStoreTests {
  @Test("conforms", arguments: StoreConformance.checks)
  func conforms(check: StoreConformance.Check) throws {
    try check.run { MemoryStore(settings: $0) }
  }
}
