import CountersignMemory
import CountersignTestServer
import Glibc

/// The path between a victim and its server: a relay on a port of 127.0.0.1 that can record or intercept.
package final class Network: Sendable {
    package let security: NetworkSecurity
    /// The tools for listening and interception.
    package let tools: LabTools
    /// The attacker's TLS settings, as a server to victims and as a client of servers; nil where there is no
    /// TLS.
    private let asServer: TLSEndpoint?
    private let asClient: TLSEndpoint?
    private let relay = TrafficRelay()
    private let entrance: LoopbackListener
    private let ledger = Locked(InterceptionLog())
    private let attackerHosts = Locked<[AttackerHost]>([])
    /// The issue time of certificates, in Unix seconds.
    private let time: Int64

    /// Starts to listen.
    package init(security: NetworkSecurity, tools: LabTools = LabTools()) throws {
        self.security = security
        self.tools = tools
        time = Int64(Glibc.time(nil))
        switch security {
        case .plain: (asServer, asClient) = (nil, nil)
        case .tls(let authority, let host):
            asServer = try TLSEndpoint.server(for: host, by: authority, at: time)
            asClient = try TLSEndpoint.client()
        }
        entrance = try LoopbackListener { [relay] in relay.serve($0) }
    }

    deinit { stop() }

    /// The port that apps connect to.
    package var publicPort: UInt16 { entrance.number }

    /// Sets the server's port, at first and after it has changed. Until then the relay closes connections.
    package func setServerPort(_ port: UInt16) { relay.server = port }

    /// Closes all connections, and accepts no more.
    package func stop() {
        entrance.stop()
        if case .mitmproxy(let program) = relay.middle { program.stop() }
        attackerHosts.with { doors in for door in doors { door.stop() } }
    }

    // MARK: Listening

    /// Starts to record, on existing connections, too.
    package func listen() -> Tap {
        let ear = TrafficRecorder()
        relay.add(ear)
        return Tap { [relay] in
            relay.remove(ear)
            return ear.recording
        }
    }

    /// The same with the tool `listener`. Returns once it captures.
    package func listen(by listener: LabTools.Capture) async throws(LabError) -> Tap {
        guard listener == .tshark else { return listen() }
        let port = publicPort
        let capture = try await DedicatedThread.run { () throws(LabError) in try TsharkCapture(port: port) }
        return Tap { capture.stop() }
    }

    // MARK: Interception

    /// Starts to intercept, also TLS, with a certificate of the attacker's authority. `middle` handles each
    /// request: `forward` sends it or another one to the server; nil closes the connection. Existing
    /// connections are closed, so that new ones are intercepted.
    package func intercept(
        _ middle:
            @escaping @Sendable (RawRequest, _ forward: (RawRequest) throws -> RawResponse) -> RawResponse?
    ) {
        replaceMiddle(
            .own(
                ManInTheMiddle(
                    endpoint: asServer, server: makeServerClient, log: newLedger(), handler: middle)))
    }

    /// The same with the tool `means`. Returns once it listens.
    package func intercept(
        by means: LabTools.Middle,
        handler middle:
            @escaping @Sendable (RawRequest, _ forward: (RawRequest) throws -> RawResponse) -> RawResponse?
    ) async throws(LabError) {
        guard case .mitmproxy(let path) = means else { return intercept(middle) }
        guard let server = relay.server else {
            throw LabError("nothing to stand before: there is no server yet")
        }
        let clerk = MitmproxyDecisionServer(log: newLedger(), server: makeServerClient, handler: middle)
        let security = security
        let program = try await DedicatedThread.run { () throws(LabError) in
            try Mitmproxy(path, server: server, security: security, decisions: clerk)
        }
        replaceMiddle(.mitmproxy(program))
    }

    /// What the interception has recorded since it started.
    package var interception: InterceptionRecord {
        if case .mitmproxy(let program) = relay.middle { return program.interception }
        return ledger.with { $0 }.record
    }

    /// Relays bytes again, and closes the intercepted connections.
    package func stopIntercepting() { replaceMiddle(nil) }

    private func newLedger() -> InterceptionLog {
        let new = InterceptionLog()
        ledger.with { $0 = new }
        return new
    }

    private func replaceMiddle(_ middle: TrafficRelay.Middle?) {
        let before = relay.middle
        relay.middle = middle
        entrance.cutConnections()
        if case .mitmproxy(let program) = before { program.stop() }
    }

    /// Opens a port under another host name, `evil.test`, that forwards to the same server.
    package func openAttackerHost() throws -> AttackerHost {
        let host = "evil.test"
        let side: TLSEndpoint? =
            switch security {
            case .plain: nil
            case .tls(let authority, _): try TLSEndpoint.server(for: host, by: authority, at: time)
            }
        let door = try AttackerHost(host, endpoint: side, server: makeServerClient)
        attackerHosts.with { $0.append(door) }
        return door
    }

    // MARK: Connections of the attacker's own

    /// Sends a request to the server. Adds `Host` where the request has none.
    package func send(_ request: RawRequest) async throws -> RawResponse {
        try await makeServerClient().send(withHost(request))
    }

    /// The same, to another node of the server.
    package func send(_ request: RawRequest, toNodeAt port: UInt16) async throws -> RawResponse {
        try await client(of: port).send(withHost(request))
    }

    /// Sends the same bytes on `parallel` connections at once, and returns the responses in the order of
    /// their arrival.
    package func send(bytes: [UInt8], parallel: Int) async throws -> [RawResponse] {
        try await makeServerClient().send(bytes, parallel: parallel)
    }

    /// A client of the server for connections that stay open.
    package func serverClient() throws(NetworkError) -> RawClient { try makeServerClient() }

    /// A new connection of the attacker's for several requests. Blocks its thread.
    package func open() throws(NetworkError) -> RawConnection { try makeServerClient().open() }

    /// The app's `Host`.
    package var authority: String { "\(host):\(publicPort)" }

    /// The request with `Host`.
    private func withHost(_ request: RawRequest) -> RawRequest {
        guard request.fields["host"] == nil else { return request }
        var request = request
        request.fields.lines.insert(.init(name: "Host", value: authority), at: 0)
        return request
    }

    private var host: String {
        switch security {
        case .plain: "bank.test"
        case .tls(_, let host): host
        }
    }

    private var makeServerClient: @Sendable () throws(NetworkError) -> RawClient {
        let (relay, tls) = (relay, tls)
        return { () throws(NetworkError) in
            guard let port = relay.server else { throw .notReached("there is no server yet") }
            return RawClient(port: port, security: tls)
        }
    }

    private func client(of port: UInt16) -> RawClient { RawClient(port: port, security: tls) }

    private var tls: RawClient.Security { asClient.map { .unchecked(name: host, $0) } ?? .none }
}

/// The security of the path between app and server, and the attacker's means against it.
package enum NetworkSecurity: Sendable {
    case plain
    /// The server speaks TLS. The attacker has an authority that the device trusts, and can issue
    /// certificates for `host` and any other name.
    case tls(authority: IssuedCertificate, host: String)
}

/// Why an exchange failed on the network. A response of the server is never such an error.
package enum NetworkError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The connection was refused.
    case notReached(String)
    /// The TLS handshake failed; with the alert or OpenSSL's message.
    case noHandshake(String)
    /// The connection ended before the response was complete, or nothing arrived for ten seconds.
    case cut(String)
    /// The response is not HTTP/1.1, or too large.
    case unreadable(String)

    package var description: String {
        switch self {
        case .notReached(let what): "not reached: \(what)"
        case .noHandshake(let what): "no TLS handshake: \(what)"
        case .cut(let what): "cut: \(what)"
        case .unreadable(let what): "not readable: \(what)"
        }
    }
}

/// A port under a host name of the attacker's that forwards requests unchanged to the server. A link, a
/// setting or a forged DNS answer leads the app here.
package final class AttackerHost: Sendable {
    /// The attacker's host name, with a valid certificate.
    package let host: String
    package var port: UInt16 { entrance.number }
    private let entrance: LoopbackListener
    private let ledger = InterceptionLog()

    init(
        _ host: String, endpoint: TLSEndpoint?,
        server: @escaping @Sendable () throws(NetworkError) -> RawClient
    ) throws {
        self.host = host
        let man = ManInTheMiddle(endpoint: endpoint, server: server, log: ledger) { try? $1($0) }
        entrance = try LoopbackListener { man.serve($0) }
    }

    /// What was forwarded.
    package var interception: InterceptionRecord { ledger.record }

    package func stop() { entrance.stop() }
}
