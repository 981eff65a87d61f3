import FanoutStore
import FanoutStoreTesting
import PostgresStore
import PostgresTesting
import Testing

@Suite("PostgresStore", .serialized, .enabled(if: PostgresServer.isPresent, PostgresServer.missing))
struct PostgresConformanceTests {
  @Test("conforms", arguments: StoreConformance.checks)
  func conforms(check: StoreConformance.Check) throws {
    var places: [Place] = []
    try check.run { settings in
      let place = try Place(settings: settings)
      places.append(place)
      return place.store
    }
  }
}
