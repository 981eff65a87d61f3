extension Command {
  /// In the order in which help lists them.
  package static let all: [Command] =
    [.demo, .dev, .topicsCreate, .topicsCheck, .emit, .worker, .replay] + [
      .show, .dump, .digest, .lag, .deadLettersList, .deadLettersShow, .deadLettersRedrive, .deadLettersDiscard,
    ] + [.migrate, .bench]
}
