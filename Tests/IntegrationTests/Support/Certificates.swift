import Foundation
import Testing

/// A certificate authority, another that nobody trusts, and the certificates of a server at 127.0.0.1, all made for one test.
///
/// As is usual, the authority does not issue certificates itself but has another do so: what a server shows is a chain.
struct Certificates {
  let authority: String
  let otherAuthority: String
  /// The server's key and its chain, each in a file, and both in one.
  let key: String
  let certificate: String
  let keyAndCertificate: String
  /// The same with a certificate that was valid until yesterday.
  let keyAndExpiredCertificate: String
  /// The certificate of a client, and its key, which takes a password to be read.
  let clientCertificate: String
  let clientKey: String

  static let clientKeyPassword = "s3cret-of-the-key"

  static func make(in folder: TestFolder) async throws -> Certificates {
    let script = """
      set -e
      cd "$0"
      elliptic="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
      authority() {
        openssl req -x509 $elliptic -keyout $1.key -out $1.pem -subj "/CN=$1" -days 2
      }
      # issue NAME ISSUER DAYS EXTENSION
      issue() {
        echo "$4" >extension
        openssl req $elliptic -keyout $1.key -out $1.csr -subj "/CN=$1"
        openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key -CAcreateserial -days $3 -extfile extension -out $1.pem
      }
      authority ca
      authority other
      issue issuer ca 2 basicConstraints=critical,CA:TRUE
      issue server issuer 2 subjectAltName=IP:127.0.0.1
      issue expired issuer -1 subjectAltName=IP:127.0.0.1
      issue client ca 2 extendedKeyUsage=clientAuth
      openssl pkcs8 -topk8 -in client.key -out client-locked.key -passout "pass:$1"
      cat issuer.pem >>server.pem
      cat issuer.pem >>expired.pem
      cat server.key server.pem >both.pem
      cat expired.key expired.pem >expired-both.pem
      """
    let path = folder.file("")
    let shell = try ChildProcess(
      "/bin/sh", ["-c", script, path, clientKeyPassword], environment: Fanout.environment, in: folder)
    if try await shell.end() != 0 { throw TestFailure(shell.report) }
    return Certificates(
      authority: path + "ca.pem", otherAuthority: path + "other.pem", key: path + "server.key",
      certificate: path + "server.pem", keyAndCertificate: path + "both.pem",
      keyAndExpiredCertificate: path + "expired-both.pem", clientCertificate: path + "client.pem",
      clientKey: path + "client-locked.key")
  }
}
