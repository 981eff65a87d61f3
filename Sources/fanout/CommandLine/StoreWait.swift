internal import FanoutStore
internal import FanoutWorker

extension Arguments {
  /// Opens the store for writing, and waits for one that is away as long as it takes, as it is done for brokers (SPEC 7).
  /// - Throws: what no waiting mends: a wrong password, another schema.
  func openStoreWhenThere(log: Log) throws -> any Store {
    let name = try storeAddress().name
    var backoff = Backoff(firstMilliseconds: 500)
    while true {
      do {
        return try openStore(.readWrite)
      } catch let error as StoreError where error.isTransient {
        let wait = backoff.nextMilliseconds()
        log.warning("can't open the store \(name) yet, trying again in \(wait) ms: \(error)")
        pause(milliseconds: wait)
      }
    }
  }
}
