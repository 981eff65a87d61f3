internal import CRdKafka

/// Why a broker's certificate was refused. librdkafka has one text for all reasons, and it names one of them.
struct CertificateFault: Sendable {
  /// `host:port`, as the client was told it.
  let broker: String
  /// OpenSSL's `X509_V_ERR_…`.
  let code: Int32
  /// Zero for the broker's own certificate, more for those of authorities.
  let depth: Int32

  var description: String {
    let whose = depth == 0 ? "the certificate of \(broker)" : "an authority's certificate in the chain of \(broker)"
    return switch code {
    case 2, 7, 18, 19, 20, 21, 27:
      "the certificate of \(broker) was not issued by an authority that is trusted here: ssl.ca.location must name the "
        + "certificate of the one that issued it"
    case 62, 64:
      "\(whose) is for another host: reach the broker by a name that is in it (--brokers, and the broker's own "
        + "advertised.listeners)"
    case 9: "\(whose) is not valid yet: check the clocks, here and where it was issued"
    case 10: "\(whose) has expired: a new one has to be issued"
    default: "\(whose) was refused with OpenSSL's error \(code), see X509_STORE_CTX_get_error(3)"
    }
  }
}

extension ClientState {
  /// Has librdkafka tell what OpenSSL finds wrong with certificates, and leaves the verdict as it is.
  static func observeCertificates(on conf: OpaquePointer) {
    // Called for each certificate of a chain, from the root down, for as long as it returns 1. librdkafka goes by that
    // alone from then on, whatever OpenSSL found.
    _ = unsafe rd_kafka_conf_set_ssl_cert_verify_cb(conf) { _, broker, _, error, depth, _, _, _, _, opaque in
      let code = unsafe error?.pointee ?? -1
      if code == 0 { return 1 }
      if let opaque = unsafe opaque {
        let broker = unsafe broker.map { unsafe String(cString: $0) } ?? "the broker"
        unsafe Unmanaged<ClientState>.fromOpaque(opaque).takeUnretainedValue().refused(
          CertificateFault(broker: broker, code: code, depth: depth))
      }
      return 0
    }
  }
}
