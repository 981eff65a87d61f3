import Kafka
import Testing

/// What is wrong with a property is said by the property's name, and never with a secret.
@Suite struct ConfigurationTests {
  private func configuration(_ properties: (name: String, value: String)...) -> ClientConfiguration {
    ClientConfiguration(brokers: "127.0.0.1:9", properties: properties)
  }

  @Test func namesAnUnknownProperty() {
    let error = kafkaError { () throws(KafkaError) in try Producer(configuration(("linger.msec", "5"))) }
    #expect(error?.message.contains("\"linger.msec\"") == true)
    #expect(error?.isInvalidArgument == true)
    #expect(error?.isRetriable == false)
  }

  @Test func namesThePropertyOfABadValue() {
    let error = kafkaError { () throws(KafkaError) in
      try Consumer(configuration(("session.timeout.ms", "soon")), group: "g")
    }
    #expect(error?.message.contains("session.timeout.ms") == true)
  }

  @Test func hidesSecrets() {
    let secret = "hunter2hunter2"
    let error = kafkaError { () throws(KafkaError) in
      try Producer(
        configuration(("security.protocol", "ssl"), ("ssl.key.pem", secret), ("ssl.key.password", secret)))
    }
    #expect(error?.message.contains(secret) == false)
    #expect(ClientConfiguration.isSecret(property: "sasl.password"))
    #expect(ClientConfiguration.isSecret(property: "ssl.key.password"))
    #expect(!ClientConfiguration.isSecret(property: "sasl.username"))
  }

  @Test(arguments: [("enable.auto.offset.store", "true"), ("group.id", "other"), ("enable.partition.eof", "false")])
  func refusesWhatItCantWorkWithout(name: String, value: String) {
    let error = kafkaError { () throws(KafkaError) in try Consumer(configuration((name, value)), group: "g") }
    #expect(error?.message.contains(name) == true)
  }

  @Test func refusesProducersWithoutReports() {
    let error = kafkaError { () throws(KafkaError) in
      try Producer(configuration(("delivery.report.only.error", "true")))
    }
    #expect(error?.message.contains("delivery.report.only.error") == true)
  }

  @Test func needsBrokersAndAGroup() {
    let nowhere = kafkaError { () throws(KafkaError) in try Producer(ClientConfiguration(brokers: "")) }
    #expect(nowhere?.message.contains("brokers") == true)
    let nobody = kafkaError { () throws(KafkaError) in try Consumer(configuration(), group: "") }
    #expect(nobody?.message.contains("group") == true)
  }

  @Test func takesOneListForBothKinds() throws {
    let events = Collected<ClientEvent>()
    var both = configuration(("linger.ms", "1"), ("fetch.wait.max.ms", "20"), ("group.id", "g"))
    both.onEvent = { events.append($0) }
    let producer = try Producer(both)
    let consumer = try Consumer(both, group: "g")
    #expect(events.all.filter { $0.facility == "CONFWARN" && $0.level > .debug }.isEmpty)
    producer.close(timeoutMilliseconds: 100)
    consumer.close(timeoutMilliseconds: 10_000)
  }

  @Test func showsCodeAndNameInErrors() {
    let error = kafkaError { () throws(KafkaError) in try Producer(configuration(("nonsense", ""))) }
    #expect(error?.name == "_INVALID_ARG")
    #expect(error.map { "\($0)" }?.hasSuffix("[_INVALID_ARG]") == true)
  }
}
