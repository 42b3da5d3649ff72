import CountersignTestKit
import Glibc
import Synchronization

/// What lies between a victim and its server: a relay on a port of 127.0.0.1, honest, or in the attacker's hand.
package final class Network: Sendable {
    package let security: NetworkSecurity
    /// What attackers here work with, where it matters that it is not ours.
    package let tools: LabTools
    /// The attacker's, as a server to victims and as a client of servers; nil where there is no TLS.
    private let asServer: TLSSide?
    private let asClient: TLSSide?
    private let relay = Relay()
    private let entrance: PublicPort
    private let ledger = Mutex(Ledger())
    private let doors = Mutex<[Door]>([])
    /// When certificates are made, in Unix seconds.
    private let time: Int64

    /// Listens from now on.
    package init(security: NetworkSecurity, tools: LabTools = LabTools()) throws {
        self.security = security
        self.tools = tools
        time = Int64(Glibc.time(nil))
        switch security {
        case .plain: (asServer, asClient) = (nil, nil)
        case .tls(let authority, let host):
            asServer = try TLSSide.server(for: host, by: authority, at: time)
            asClient = try TLSSide.client()
        }
        entrance = try PublicPort { [relay] in relay.serve($0) }
    }

    deinit { stop() }

    /// Where the app believes its server to be.
    package var publicPort: UInt16 { entrance.number }

    /// Says where the server is: at first, and when it has moved. Until then connections are cut.
    package func lead(to port: UInt16) { relay.server = port }

    /// Cuts everything, and takes no more connections.
    package func stop() {
        entrance.stop()
        if case .mitmproxy(let program) = relay.middle { program.stop() }
        doors.withLock { doors in for door in doors { door.stop() } }
    }

    // MARK: Listening

    /// Begins to record what passes, on connections there are, too.
    package func listen() -> Tap {
        let ear = Ear()
        relay.add(ear)
        return Tap { [relay] in
            relay.remove(ear)
            return ear.recording
        }
    }

    /// The same, with a program that is not ours where `listener` is one. Begins when that captures.
    package func listen(by listener: LabTools.Capture) async throws(StageFault) -> Tap {
        guard listener == .tshark else { return listen() }
        let port = publicPort
        let capture = try await Blocking.run { () throws(StageFault) in try TsharkCapture(port: port) }
        return Tap { capture.stop() }
    }

    // MARK: In the middle

    /// From now on the attacker is in the middle, of TLS, too, under a certificate of his authority: `middle` decides what becomes of each
    /// request, by having `forward` send it, or another, to the server; nil cuts the connection. Connections that were open are cut, so
    /// that they come back through him.
    package func interpose(
        _ middle: @escaping @Sendable (RawRequest, _ forward: (RawRequest) throws -> RawResponse) -> RawResponse?
    ) {
        take(.own(ManInTheMiddle(side: asServer, server: wayToServer, ledger: newLedger(), deed: middle)))
    }

    /// The same, by a program that is not ours where `means` is one. Begins when that listens.
    package func interpose(
        by means: LabTools.Middle,
        _ middle: @escaping @Sendable (RawRequest, _ forward: (RawRequest) throws -> RawResponse) -> RawResponse?
    ) async throws(StageFault) {
        guard case .mitmproxy(let path) = means else { return interpose(middle) }
        guard let server = relay.server else { throw StageFault("nothing to stand before: there is no server yet") }
        let clerk = MitmproxyClerk(ledger: newLedger(), server: wayToServer, deed: middle)
        let security = security
        let program = try await Blocking.run { () throws(StageFault) in
            try Mitmproxy(path, server: server, security: security, clerk: clerk)
        }
        take(.mitmproxy(program))
    }

    /// What the man in the middle has come across since he was interposed.
    package var interposed: Interposed {
        if case .mitmproxy(let program) = relay.middle { return program.interposed }
        return ledger.withLock { $0 }.interposed
    }

    /// Relays bytes again, and cuts the connections of who was in the middle.
    package func beHonest() { take(nil) }

    private func newLedger() -> Ledger {
        let new = Ledger()
        ledger.withLock { $0 = new }
        return new
    }

    private func take(_ middle: Relay.Middle?) {
        let before = relay.middle
        relay.middle = middle
        entrance.cutConnections()
        if case .mitmproxy(let program) = before { program.stop() }
    }

    /// Opens a port under another host name, `evil.test`, that leads to the same server.
    package func openDoor() throws -> Door {
        let host = "evil.test"
        let side: TLSSide? =
            switch security {
            case .plain: nil
            case .tls(let authority, _): try TLSSide.server(for: host, by: authority, at: time)
            }
        let door = try Door(host, side: side, server: wayToServer)
        doors.withLock { $0.append(door) }
        return door
    }

    // MARK: On connections of his own

    /// Sends a request to the server. Names the host where the request does not.
    package func send(_ request: RawRequest) async throws -> RawResponse {
        try await wayToServer().send(addressed(request))
    }

    /// The same, to another node of it.
    package func send(_ request: RawRequest, toNodeAt port: UInt16) async throws -> RawResponse {
        try await client(of: port).send(addressed(request))
    }

    /// Sends the same bytes on so many connections at once, and gives the answers as they came.
    package func send(bytes: [UInt8], parallel: Int) async throws -> [RawResponse] {
        try await wayToServer().send(bytes, parallel: parallel)
    }

    /// How the attacker reaches the server, for connections that he keeps.
    package func way() throws(NetworkProblem) -> RawClient { try wayToServer() }

    /// A connection of the attacker's own, for more than one request. Blocks its thread.
    package func open() throws(NetworkProblem) -> Link { try wayToServer().open() }

    /// What the app puts into `Host`.
    package var authority: String { "\(host):\(publicPort)" }

    /// The request, with a host.
    private func addressed(_ request: RawRequest) -> RawRequest {
        guard request.fields["host"] == nil else { return request }
        var request = request
        request.fields.lines.insert(.init("Host", authority), at: 0)
        return request
    }

    private var host: String {
        switch security {
        case .plain: "bank.test"
        case .tls(_, let host): host
        }
    }

    private var wayToServer: @Sendable () throws(NetworkProblem) -> RawClient {
        let (relay, tls) = (relay, tls)
        return { () throws(NetworkProblem) in
            guard let port = relay.server else { throw .notReached("there is no server yet") }
            return RawClient(port: port, security: tls)
        }
    }

    private func client(of port: UInt16) -> RawClient { RawClient(port: port, security: tls) }

    private var tls: RawClient.Security { asClient.map { .unchecked(name: host, $0) } ?? .none }
}
