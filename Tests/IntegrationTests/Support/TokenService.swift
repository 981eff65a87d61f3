import Foundation

/// A process that gives tokens to one client that knows the secret, as an identity provider does. They are not signed: the broker
/// of ``SecureKafka`` takes them as they are.
final class TokenService: Sendable {
  static let client = "fanout"
  static let secret = "s3cret-of-the-client"

  let address: String
  private let process: ChildProcess
  private let folder: TestFolder

  static func start() async throws -> TokenService {
    let folder = try TestFolder()
    let process = try ChildProcess(
      "/usr/bin/env", ["python3", "-c", script, client, secret], environment: Fanout.environment, in: folder)
    try await eventually("the token service prints its port", else: process.report) {
      process.standardOutput.hasSuffix("\n")
    }
    let port = process.standardOutput.trimmingCharacters(in: .whitespacesAndNewlines)
    return TokenService("http://127.0.0.1:\(port)/token", process, folder)
  }

  private init(_ address: String, _ process: ChildProcess, _ folder: TestFolder) {
    self.address = address
    self.process = process
    self.folder = folder
  }

  func stop() { process.kill() }

  private static let script = """
    import base64, http.server, json, sys, time
    right = base64.b64encode(":".join(sys.argv[1:3]).encode()).decode()
    def part(content):
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
    class Service(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            now, status, answer = int(time.time()), 401, {"error": "invalid_client"}
            if self.headers["Authorization"] == "Basic " + right:
                token = part({"alg": "none"}) + "." + part({"sub": "alice", "iat": now, "exp": now + 600}) + "."
                status, answer = 200, {"access_token": token, "token_type": "Bearer", "expires_in": 600}
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        def log_message(self, *words):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    print(server.server_port, flush=True)
    server.serve_forever()
    """
}
