import FanoutStore
import FanoutStoreTesting
import Glibc
import SQLiteStore
import Testing

@Suite("Opening a SQLite store")
struct OpeningTests {
  private let folder: ScratchFolder
  private let path: String

  init() throws {
    folder = try ScratchFolder()
    path = folder.file("store.db")
  }

  private func error(_ body: () throws -> Void) -> StoreError? {
    do {
      try body()
      return nil
    } catch {
      return error as? StoreError
    }
  }

  private func open(_ access: SQLiteStore.Access, settings: StoreSettings? = nil) throws -> SQLiteStore {
    try SQLiteStore(path: path, access: access, settings: settings)
  }

  private var exists: Bool { unsafe access(path, F_OK) == 0 }

  private func write(_ text: String) throws {
    guard let file = unsafe fopen(path, "w") else { throw ConformanceFailure("can't write \(path)") }
    unsafe fputs(text, file)
    unsafe fclose(file)
  }

  @Test("a missing folder is named, with what to do")
  func missingFolder() throws {
    let missing = folder.file("none/store.db")
    for access in [SQLiteStore.Access.readOnly, .readWrite] {
      let error = error { _ = try SQLiteStore(path: missing, access: access, settings: nil) }
      #expect(error?.code == .cannotOpen)
      #expect(error?.message.contains(missing) == true)
      #expect(error?.isTransient == false)
      #expect(error?.nativeCode != 0)
    }
    #expect(self.error { _ = try SQLiteStore.migrate(path: missing) }?.code == .cannotOpen)
  }

  @Test("a missing file is made for writing, and not for reading")
  func missingFile() throws {
    #expect(error { _ = try open(.readOnly) }?.code == .cannotOpen)
    #expect(!exists)
    let store = try open(.readWrite)
    #expect(exists)
    #expect(store.settings == .standard)
  }

  @Test("another program's database is refused, and left as it was")
  func otherProgram() throws {
    let other = try Database(path)
    try other.execute("CREATE TABLE thing(a); INSERT INTO thing VALUES(7); PRAGMA user_version = 1")
    for access in [SQLiteStore.Access.readOnly, .readWrite] {
      #expect(error { _ = try open(access) }?.code == .schema)
    }
    #expect(error { _ = try SQLiteStore.migrate(path: path) }?.code == .schema)
    #expect(try other.integer("SELECT a FROM thing") == 7)
    #expect(try other.integer("SELECT count(*) FROM sqlite_schema") == 1)
    #expect(try other.integer("PRAGMA application_id") == 0)
    #expect(try other.integer("SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'delete'") == 1)
  }

  @Test(
    "a file that is no database is refused, and left as it was",
    arguments: ["hello\n", String(repeating: "garbage ", count: 2000)])
  func garbage(text: String) throws {
    try write(text)
    for access in [SQLiteStore.Access.readOnly, .readWrite] {
      #expect(error { _ = try open(access) }?.code == .corrupt)
    }
    #expect(error { _ = try SQLiteStore.migrate(path: path) }?.code == .corrupt)
    var status = stat()
    #expect(unsafe stat(path, &status) == 0 && Int(status.st_size) == text.utf8.count)
  }

  @Test("an empty file is made a store")
  func emptyFile() throws {
    try write("")
    #expect(error { _ = try open(.readOnly) }?.code == .schema)
    _ = try open(.readWrite)
    _ = try open(.readOnly)
  }

  @Test("a folder is no store")
  func folderAsFile() {
    let error = error { _ = try SQLiteStore(path: folder.path, access: .readWrite, settings: nil) }
    #expect(error?.code == .cannotOpen)
  }

  @Test("a newer schema is refused, and says so")
  func newerSchema() throws {
    _ = try open(.readWrite)
    try Database(path).execute("PRAGMA user_version = 99")
    for access in [SQLiteStore.Access.readOnly, .readWrite] {
      let error = error { _ = try open(access) }
      #expect(error?.code == .schema)
      #expect(error?.message.contains("99") == true)
    }
    #expect(error { _ = try SQLiteStore.migrate(path: path) }?.code == .schema)
  }

  @Test("other settings than the store's are refused; none take it as it is")
  func otherSettings() throws {
    let settings = StoreSettings(feedLimit: 7, includesOwnPosts: false)
    #expect(try open(.readWrite, settings: settings).settings == settings)
    for other in [StoreSettings(feedLimit: 8, includesOwnPosts: false), StoreSettings(feedLimit: 7)] {
      for access in [SQLiteStore.Access.readOnly, .readWrite] {
        let error = error { _ = try open(access, settings: other) }
        #expect(error?.code == .schema)
        #expect(error?.message.contains("feed limit 7") == true)
      }
    }
    for access in [SQLiteStore.Access.readOnly, .readWrite] {
      #expect(try open(access).settings == settings)
      #expect(try open(access, settings: settings).settings == settings)
    }
  }

  @Test("a store opened for reading reads what is written meanwhile, and refuses to write")
  func readOnly() throws {
    let writer = try open(.readWrite)
    let reader = try open(.readOnly)
    let scenario = try Scenario({ _ in writer })
    try scenario.apply(.follow("a", "b", at: 1), .published("b", "p", at: 1))
    #expect(try DumpLines.of(reader) == DumpLines.of(writer))
    let batch = Scenario.batch([.follow("c", "b", at: 1)])
    #expect(error { _ = try reader.commitFacts(batch) }?.code == .refused)
    #expect(error { _ = try reader.deriveViews(of: batch, sliceSize: 1) }?.code == .refused)
  }

  @Test("what was written is there when the store is opened again")
  func reopening() throws {
    let settings = StoreSettings(feedLimit: 2)
    var lines: [[UInt8]] = []
    do {
      let scenario = try Scenario({ _ in try open(.readWrite, settings: settings) })
      for index in 0..<9 {
        try scenario.apply(.follow("a", "b", at: 1), .published("b", "p\(index)", at: Int64(index)))
      }
      lines = try DumpLines.of(scenario.store)
    }
    #expect(lines.count == 6)
    #expect(try DumpLines.of(open(.readOnly)) == lines)
  }

  // MARK: Migration

  @Test("migration makes a store, and its repetition does nothing")
  func migration() throws {
    let first = try SQLiteStore.migrate(path: path, settings: StoreSettings(feedLimit: 3))
    #expect(first.from == 0)
    #expect(first.to > 0)
    let store = try open(.readWrite)
    let scenario = try Scenario({ _ in store })
    try scenario.apply(.follow("a", "b", at: 1))
    for _ in 0..<2 {
      let again = try SQLiteStore.migrate(path: path, settings: StoreSettings(feedLimit: 4))
      #expect(again.from == first.to && again.to == first.to)
    }
    #expect(try open(.readOnly).settings.feedLimit == 3)
    try scenario.expectOracle()
  }

  @Test("several that make one store at once all get it", arguments: 0..<100)
  func racing(round: Int) async throws {
    let path = path
    try await withThrowingTaskGroup(of: StoreSettings.self) { group in
      for worker in 0..<4 {
        group.addTask {
          if worker % 2 == 0 { _ = try SQLiteStore.migrate(path: path) }
          return try SQLiteStore(path: path, access: .readWrite, settings: nil).settings
        }
      }
      for try await settings in group { #expect(settings == .standard) }
    }
  }
}
