internal import Kafka

extension Arguments {
  /// Says so of secrets among the arguments, and where they should be instead.
  func warnOfVisibleSecrets() {
    func warn(_ what: String, _ remedy: String) {
      complain("\(what) is among the arguments, where every user of this machine can read it; \(remedy)")
    }
    for text in visible(.kafka) {
      // Without a "=" nobody knows where a name ends and a secret begins.
      guard let equals = text.firstIndex(of: "=") else { continue }
      let name = String(text[..<equals])
      if ClientConfiguration.isSecret(property: name) { warn(name, "put it into a file and give that as --kafka-file") }
    }
    if visible(.store).contains(where: { (try? StoreAddress($0))?.hasPassword == true }) {
      warn("the password of --store", "put it into ~/.pgpass or the file that PGPASSFILE names")
    }
  }
}
