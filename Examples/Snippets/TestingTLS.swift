// Issues certificates in the test's process and runs a server that presents them: tests of trust over real
// TLS.
import CountersignTestKit
import CountersignTransport
import CountersignTrust

/// The certificates of a root, an intermediate authority and a server.
func chain(at time: Int64) throws -> [IssuedCertificate] {
    var request = CertificateRequest("Root", at: time)
    request.role = .authority
    let root = try IssuedCertificate.selfSigned(request)
    request.subject = "Between"
    let between = try root.issue(request)
    let server = try between.issue(CertificateRequest("Server", hosts: ["api.example.com"], at: time))
    print(server.certificate.pin, try server.pem().certificate.count)
    return [server, between, root]
}

/// Requests for other kinds of certificates.
func others(at time: Int64, _ server: IssuedCertificate) throws -> [CertificateRequest] {
    var renewed = CertificateRequest("Renewed", at: time)
    renewed.key = .of(server)
    renewed.hosts = ["api.example.com", "192.0.2.1"]
    var weak = CertificateRequest("Weak", at: time)
    weak.key = CertificateRequest.Key.rsa(1024)
    weak.role = CertificateRequest.Role.client
    weak.validity = (time - 20)...(time - 10)
    var stapled = CertificateRequest("Stapled", at: time)
    stapled.key = .p256
    stapled.role = .serverWithStaple
    stapled.alternativeNames = ["DNS:api.example.com"]
    var usual = stapled
    usual.role = .server
    return [renewed, weak, stapled, usual]
}

/// A server that proves its own revocation by a staple: the client refuses it before it sends a byte of the
/// request.
func aRevokedServer(at time: Int64) async throws {
    let chain = try chain(at: time)
    let staple = try Staple.make(
        .revoked, of: chain[0], issuedBy: chain[1], signedBy: chain[1], at: time)
    var identity = TestServer.Credentials(Array(chain[..<2]), staple: staple)
    identity.newest = .tls13
    let server = try TestServer(.tls(identity)) { connection in
        guard let head = connection.readHead() else { return }
        print(head, connection.readBody(2))
        connection.answer("200 OK", body: "hello", fields: "Content-Type: text/plain\r\n")
    }
    defer { server.stop() }
    var options = TransportOptions()
    options.authorities = .instead([chain[2].certificate])
    options.addresses = [try Trust.Host("api.example.com"): try Trust.Host("127.0.0.1")]
    options.clock.wall = { time }
    let transport = try HTTPTransport(trust: .system, options: options)
    let origin = Origin(.tls, host: try Trust.Host("api.example.com"), port: server.port)
    do {
        _ = try await transport.send(OutgoingRequest("GET", origin: origin, target: "/"))
    } catch {
        print(error.cause)
    }
    assert(server.tally.received == 0)
    // Counted on the socket once the connection is over: no record of application data (RFC 8446: 23), in the
    // handshake neither.
    while server.tally.closed == 0 { TestServer.rest(milliseconds: 1) }
    assert(server.tally.records[23] == nil)
}

/// A server without TLS that closes the connection in the middle of a response.
func aServerThatBreaksOff() throws -> TestServer {
    try TestServer(.plain) { (connection: TestConnection) in
        _ = connection.read()
        connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".utf8))
        TestServer.rest(milliseconds: 20)
    }
}

/// Reads the counters and cuts the connections.
func watch(_ server: TestServer) {
    let tally: TestServer.Counters = server.tally
    print(tally.connections, tally.handshakes, tally.resumptions, tally.received)
    server.cutConnections()
    print(server.isClosed)
}

/// Options that tests vary.
func varied(_ identity: TestServer.Credentials, good: Staple.CertificateStatus = .good) -> TestServer.Security
{
    var identity = identity
    identity.newest = TestServer.Credentials.Version.tls12
    print(identity.chain.count, identity.staple.count, good)
    return .tls(identity)
}

/// The error of a fixture.
func failure(_ error: TestError) -> String { error.description }
