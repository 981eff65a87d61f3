import FanoutWorker
import Glibc
import Kafka
import fanout

/// Whatever is said on the command line and in variables is taken, or called wrong usage.
///
/// The first line names the command, each further one is a word, or a variable if it begins with `FANOUT_`. What follows an
/// empty line is in a file with secrets.
enum OptionTarget {
  private static let fileOptions: Set = ["kafka-file", "kafka-password-file"]

  static func check(_ input: [UInt8]) throws {
    let text = String(decoding: input, as: UTF8.self)
    let halves = text.firstRange(of: "\n\n").map { (text[..<$0.lowerBound], text[$0.upperBound...]) } ?? (text[...], "")
    let lines = halves.0.split(separator: "\n").map(String.init)
    let command = Command.all.first { $0.name == lines.first } ?? Command.all[input.count % Command.all.count]
    var words: [String] = []
    var variables: [String: String] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
      if line.hasPrefix("FANOUT_"), parts.count == 2 { variables[parts[0]] = parts[1] } else { words.append(line) }
    }
    try allowingWrongUsage {
      try checkValues(try Arguments(words[...], for: command) { variables[$0] }, of: command)
    }
    if let option = command.options.first(where: { fileOptions.contains($0.name) }), !halves.1.isEmpty {
      try checkFile(Array(halves.1.utf8), option)
    }
  }

  private static func checkValues(_ arguments: Arguments, of command: Command) throws {
    for option in command.options {
      try promise(
        arguments.all(option).last == arguments.optional(option) || arguments.all(option).isEmpty, "two values")
      try allowingWrongUsage { _ = try arguments.string(option) }
      try allowingWrongUsage { _ = try arguments.flag(option) }
      try allowingWrongUsage {
        if let number = try arguments.optionalNumber(option, in: -1...1000) {
          try promise(-1...1000 ~= number, "\(number) is beyond the bounds")
        }
      }
    }
    try allowingWrongUsage { _ = try arguments.log() }
    try allowingWrongUsage { _ = try arguments.settings() }
    try allowingWrongUsage { _ = try arguments.storeAddress() }
    try allowingWrongUsage { _ = try arguments.letterSelection(try arguments.topics()) }
    // These could name any file.
    if command.options.contains(where: { fileOptions.contains($0.name) && arguments.optional($0) != nil }) { return }
    try allowingWrongUsage {
      let kafka = try arguments.kafka()
      let given = command.options.first { $0.name == "kafka" }.map(arguments.all) ?? []
      let read = kafka.properties.map { "\($0.name)=\($0.value)" }
      try promise(read == given, "\(given) was read as \(read)")
      try promise(kafka.properties.allSatisfy { !$0.name.isEmpty }, "a property without a name")
      let worker = try arguments.workerConfiguration(kafka: kafka, group: "g")
      try promise(worker.sliceSize > 0 && worker.maxInFlight > 0 && worker.writers > 0, "\(worker)")
    }
  }

  private static func checkFile(_ content: [UInt8], _ option: Option) throws {
    guard let file = unsafe tmpfile() else { throw Violation("no file could be made") }
    defer { unsafe fclose(file) }
    try promise(unsafe fwrite(content, 1, content.count, file) == content.count, "the file could not be written")
    unsafe fflush(file)
    let path = unsafe "/proc/self/fd/\(fileno(file))"
    try allowingWrongUsage {
      let secret = Array(try SecretFile.password(path, for: option).utf8)
      try promise(content.starts(with: secret), "the password is not the file's")
      try promise(!secret.isEmpty && !secret.contains(0x0A) && !secret.contains(0), "no such password")
    }
    try allowingWrongUsage {
      for (name, value) in try SecretFile.properties(path, for: option) {
        try promise(!name.isEmpty && !(name + value).utf8.contains(0x0A), "no such property: \(name)=\(value)")
      }
    }
  }

  /// Wrong usage is told, with what to do.
  private static func allowingWrongUsage(_ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as UsageError {
      try promise(!error.description.isEmpty, "an error without words")
    }
  }
}
