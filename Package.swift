// swift-tools-version: 6.2
import PackageDescription

/// One set of rules for every target: Swift 6 language mode, unsafe constructs marked, no warning left standing.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let commandParts: [Target.Dependency] = ["FanoutWorker", "FanoutProducer", "PostgresStore", "SQLiteStore"]
/// What fuzzers reach.
let fuzzed: [Target.Dependency] = ["fanout", "FanoutStore", "FanoutWorker", "Kafka", "PostgresStore", "SocialEvents"]

let package = Package(
  name: "fanout",
  products: [
    .executable(name: "fanout", targets: ["fanout"]),
    .library(name: "SocialEvents", targets: ["SocialEvents"]),
    .library(name: "Kafka", targets: ["Kafka"]),
    .library(name: "FanoutProducer", targets: ["FanoutProducer"]),
    .library(name: "FanoutStore", targets: ["FanoutStore"]),
    .library(name: "FanoutStoreTesting", targets: ["FanoutStoreTesting"]),
    .library(name: "SQLiteStore", targets: ["SQLiteStore"]),
    .library(name: "PostgresStore", targets: ["PostgresStore"]),
    .library(name: "FanoutWorker", targets: ["FanoutWorker"]),
    // For tests: a library that they put before those of the command.
    .library(name: "FaultInjection", type: .dynamic, targets: ["FaultInjection"]),
  ],
  targets: [
    // C libraries of the system: a module map and a shim each, nothing else.
    .systemLibrary(name: "CRdKafka", pkgConfig: "rdkafka", providers: [.apt(["librdkafka-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),

    // The vocabulary: no C, no clock. What a service that only emits imports.
    .target(name: "SocialEvents", swiftSettings: strict),
    // The only importer of librdkafka. Knows no events.
    .target(name: "Kafka", dependencies: ["CRdKafka"], swiftSettings: strict),
    .target(name: "FanoutProducer", dependencies: ["SocialEvents", "Kafka"], swiftSettings: strict),

    // The storage adapter protocol, its values, and the in-memory model.
    .target(name: "FanoutStore", dependencies: ["SocialEvents", "CCrypto"], swiftSettings: strict),
    .target(name: "SQLiteStore", dependencies: ["FanoutStore", "CSQLite"], swiftSettings: strict),
    .target(name: "PostgresStore", dependencies: ["FanoutStore", "CPostgres"], swiftSettings: strict),
    .target(name: "FanoutStoreTesting", dependencies: ["FanoutStore"], swiftSettings: strict),

    .target(
      name: "FanoutWorker", dependencies: ["SocialEvents", "Kafka", "FanoutStore"], swiftSettings: strict),
    .executableTarget(name: "fanout", dependencies: commandParts, swiftSettings: strict),

    .testTarget(
      name: "SocialEventsTests", dependencies: ["SocialEvents"], exclude: ["Corpus"], swiftSettings: strict),
    // What the fuzzers of Deploy/fuzz.sh check, on the inputs that are kept.
    .testTarget(
      name: "FuzzingTests", dependencies: fuzzed, exclude: ["Corpus", "FuzzerEntry.swift"], swiftSettings: strict),
    .testTarget(name: "KafkaTests", dependencies: ["Kafka"], swiftSettings: strict),
    .testTarget(
      name: "FanoutWorkerTests", dependencies: ["FanoutWorker", "Kafka", "SocialEvents"], swiftSettings: strict),
    // The PostgreSQL of FANOUT_TEST_POSTGRES, or one that the tests start; and servers that a test may crash.
    .target(
      name: "PostgresTesting", dependencies: ["PostgresStore"], path: "Tests/PostgresTesting", swiftSettings: strict),
    // Nothing links it: tests have it loaded into the command's processes.
    .target(
      name: "FaultInjection", dependencies: ["CRdKafka", "CSQLite", "CPostgres"], path: "Tests/FaultInjection",
      cSettings: [.treatAllWarnings(as: .error), .enableWarning("all"), .enableWarning("extra")]),
    // The command as processes, on the embedded broker and on a real Kafka.
    .testTarget(
      name: "IntegrationTests",
      dependencies: [
        "fanout", "FanoutProducer", "FanoutStore", "FanoutStoreTesting", "Kafka", "PostgresStore", "PostgresTesting",
        "SQLiteStore", "SocialEvents",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "FanoutStoreTests", dependencies: ["FanoutStore", "FanoutStoreTesting", "SQLiteStore"],
      swiftSettings: strict),
    .testTarget(
      name: "SQLiteStoreTests", dependencies: ["FanoutStore", "FanoutStoreTesting", "SQLiteStore", "CSQLite"],
      swiftSettings: strict),
    .testTarget(
      name: "PostgresStoreTests",
      dependencies: ["FanoutStore", "FanoutStoreTesting", "PostgresStore", "PostgresTesting", "SocialEvents"],
      swiftSettings: strict),
    .testTarget(
      name: "ConvergenceTests", dependencies: ["FanoutStore", "FanoutStoreTesting", "SQLiteStore"],
      swiftSettings: strict),
  ]
)

// What Thread Sanitizer needs to see all threads and locks: see Deploy/sanitize.sh.
if Context.environment["FANOUT_SANITIZE"] == "thread" {
  package.targets.append(
    .target(name: "CThreadSanitizer", path: "Tests/CThreadSanitizer", publicHeadersPath: "."))
  package.targets.first { $0.name == "Kafka" }?.dependencies.append("CThreadSanitizer")
}

// The fuzzers of Deploy/fuzz.sh. The entry point of their program is libFuzzer's, and a program can only link the command as a
// library.
if Context.environment["FANOUT_FUZZ"] == "1" {
  package.products = []
  package.targets.removeAll { $0.type == .test || $0.name == "fanout" }
  package.targets += [
    .target(name: "fanout", dependencies: commandParts, exclude: ["Program.swift"], swiftSettings: strict),
    .executableTarget(
      name: "fuzz", dependencies: fuzzed, path: "Tests/FuzzingTests", exclude: ["Corpus", "CorpusTests.swift"],
      swiftSettings: strict),
  ]
}
