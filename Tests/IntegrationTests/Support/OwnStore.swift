import Foundation
import PostgresTesting
import SQLiteStore
import Testing

/// Where a deployment keeps its views.
enum StoreKind: Sendable, CustomTestStringConvertible {
  /// A file in the deployment's folder.
  case sqlite
  /// That file.
  case sqliteAt(String)
  /// A schema on the server that tests share.
  case postgres
  /// The database of that address.
  case postgresAt(String)

  /// Each kind once.
  static let all: [StoreKind] = [.sqlite, .postgres]

  var testDescription: String {
    switch self {
    case .sqlite, .sqliteAt: "SQLite"
    case .postgres, .postgresAt: "PostgreSQL"
    }
  }
}

/// A store that nobody else uses.
final class OwnStore: Sendable {
  /// What `--store` takes.
  let option: String
  private enum Place {
    case file(String)
    case database(SharedConnection, ScratchSchema?)
  }
  private let place: Place

  init(_ kind: StoreKind, in folder: TestFolder) throws {
    switch kind {
    case .sqlite:
      let path = folder.newFile("store.db")
      option = "sqlite:\(path)"
      place = .file(path)
    case .sqliteAt(let path):
      option = "sqlite:\(path)"
      place = .file(path)
    case .postgres:
      let schema = try ScratchSchema()
      option = schema.address
      place = .database(SharedConnection(schema.address), schema)
    case .postgresAt(let address):
      option = address
      place = .database(SharedConnection(address), nil)
    }
  }

  deinit {
    if case .database(_, let schema) = place { schema?.drop() }
  }

  /// The file of a SQLite store.
  var path: String {
    get throws {
      guard case .file(let path) = place else { throw TestFailure("\(option) is no file") }
      return path
    }
  }

  /// Changes the store behind the program's back.
  func execute(sqlite: String, postgres: String) throws {
    switch place {
    case .file(let path): try Connection(path: path, access: .readWrite).execute(sqlite)
    case .database(let database, _): try database.execute(postgres)
    }
  }

  /// How many edges and posts the store knows, absent and deleted ones too; 0 while there is no store, or none that answers.
  func registerCount() -> Int {
    let sql = "SELECT (SELECT count(*) FROM edge) + (SELECT count(*) FROM post)"
    switch place {
    case .file(let path):
      guard let database = try? Connection(path: path, access: .readOnly), let count = try? database.statement(sql)
      else { return 0 }
      return (try? count.first { Int(count.integer(0)) }) ?? 0
    case .database(let database, _): return (try? database.integer(sql)) ?? 0
    }
  }
}
