import CountersignLab
import CountersignMemory
import CountersignTestServer
import Glibc

/// The TLS server that a port of the client calls. It passes requests on to the gateway, records them, and
/// follows the rules of a case about what becomes of an answer.
final class InterceptionProxy: Sendable {
    /// How a request is passed on, the same or another one: the gateway's answer.
    typealias Forward = (RawRequest) throws(NetworkError) -> RawResponse
    /// What is done with a request.
    typealias Interceptor = @Sendable (RawRequest, Forward) throws(NetworkError) -> Action

    /// What the port gets.
    enum Action: Sendable {
        case answer(RawResponse)
        /// These bytes, and then the end of the connection.
        case bytes([UInt8])
        /// A body without an end.
        case endless
        /// The end of the connection.
        case cut
    }

    /// A request, and what the port got for it; nil where that was no answer.
    struct Exchange: Sendable {
        var request: RawRequest
        var answer: RawResponse?
        /// Whole Unix seconds, when it came.
        var time: Int64
    }

    private struct Rule {
        var method: String
        var path: String
        var remaining: Int
        var treatment: Interceptor
    }

    private struct State {
        var side: TLSEndpoint
        var gateway: UInt16?
        var rules: [Rule] = []
        var exchanges: [Exchange] = []
        /// Of ``Action/endless``, before the port closed the connection.
        var endlessBytes = 0
    }

    /// Shared with the threads of the connections, which live as long as those do.
    private final class Shared: Sendable {
        let state: Locked<State>

        init(_ side: TLSEndpoint) { state = Locked(State(side: side)) }
    }

    /// Bytes of an endless body, at most.
    private static let longestEndless = 96 << 20

    private let shared: Shared
    private let listener: LoopbackListener

    /// Listens from now on, under that certificate.
    init(showing certificate: IssuedCertificate) throws(LabError) {
        let shared = Shared(try InterceptionProxy.side(certificate))
        self.shared = shared
        listener = try LoopbackListener { InterceptionProxy.serve($0, sharing: shared) }
    }

    deinit { listener.stop() }

    var port: UInt16 { listener.number }

    /// Says where requests go. Until then connections are cut.
    func setGateway(port gateway: UInt16) { shared.state.with { $0.gateway = gateway } }

    /// Shows another certificate from now on. Connections that are open end.
    func show(_ certificate: IssuedCertificate) throws(LabError) {
        let side = try InterceptionProxy.side(certificate)
        shared.state.with { $0.side = side }
        listener.cutConnections()
    }

    func stop() { listener.stop() }

    /// The next `times` requests of that method and path are treated so; paths are without the query.
    func intercept(_ method: String, path: String, times: Int = 1, treatment: @escaping Interceptor) {
        let rule = Rule(method: method, path: path, remaining: times, treatment: treatment)
        shared.state.with { $0.rules.append(rule) }
    }

    /// Passes on everything again, and cuts the connections.
    func removeRules() {
        shared.state.with { $0.rules = [] }
        listener.cutConnections()
    }

    /// Whether a rule still waits for its first request.
    var unusedRule: String? {
        shared.state.with { state in
            state.rules.first { $0.remaining > 0 }.map { "\($0.method) \($0.path)" }
        }
    }

    /// All that came since ``clearExchanges()``.
    var exchanges: [Exchange] { shared.state.with { $0.exchanges } }

    var endlessBytes: Int { shared.state.with { $0.endlessBytes } }

    func clearExchanges() {
        shared.state.with { state in
            state.exchanges = []
            state.endlessBytes = 0
        }
    }

    private static func side(_ certificate: IssuedCertificate) throws(LabError) -> TLSEndpoint {
        do {
            return try TLSEndpoint.server(showing: certificate)
        } catch {
            throw LabError(error.description)
        }
    }
}

extension InterceptionProxy {
    /// One connection, from its handshake to its end.
    private static func serve(_ descriptor: Int32, sharing shared: Shared) {
        let side = shared.state.with { $0.side }
        guard let link = try? RawConnection.accept(descriptor, as: side) else { return }
        var reader = MessageReader(link)
        while let read = try? reader.request(onContinue: {
            link.write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        }) {
            guard answer(read, on: link, sharing: shared),
                read.message.fields["connection"]?.lowercased() != "close"
            else {
                return
            }
        }
    }

    /// False where the connection ends behind it.
    private static func answer(
        _ read: MessageReader.ParsedMessage<RawRequest>, on link: RawConnection, sharing shared: Shared
    )
        -> Bool
    {
        let request = read.message
        let number = shared.state.with { state in
            state.exchanges.append(Exchange(request: request, answer: nil, time: Int64(time(nil))))
            return state.exchanges.count - 1
        }
        var last: MessageReader.ParsedMessage<RawResponse>?
        let forward: Forward = { (request) throws(NetworkError) in
            guard let port = shared.state.with({ $0.gateway }) else { throw .notReached("no gateway") }
            let bytes = request == read.message ? read.bytes : request.bytes
            let response = try RawClient(port: port, security: .none).exchange(bytes, method: request.method)
            last = response
            return response.message
        }
        let reaction: Action
        do {
            if let treatment = takeRule(for: request, sharing: shared) {
                reaction = try treatment(request, forward)
            } else {
                reaction = .answer(try forward(request))
            }
        } catch {
            return false
        }
        switch reaction {
        case .answer(let response):
            shared.state.with { state in
                if state.exchanges.indices.contains(number) { state.exchanges[number].answer = response }
            }
            // An answer that is left as it was goes on as the same bytes.
            let bytes = last?.message == response ? last?.bytes ?? response.bytes : response.bytes
            return link.write(bytes) && response.fields["connection"]?.lowercased() != "close"
        case .bytes(let bytes): link.write(bytes)
        case .endless: sendEndlessBody(to: link, sharing: shared)
        case .cut: break
        }
        return false
    }

    private static func takeRule(for request: RawRequest, sharing shared: Shared) -> Interceptor? {
        shared.state.with { state in
            let index = state.rules.firstIndex {
                $0.remaining > 0 && $0.method == request.method && $0.path == request.path
            }
            guard let index else { return nil }
            state.rules[index].remaining -= 1
            return state.rules[index].treatment
        }
    }

    private static func sendEndlessBody(to link: RawConnection, sharing shared: Shared) {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        guard link.write(Array(head.utf8)) else { return }
        let chunk = Array("10000\r\n".utf8) + [UInt8](repeating: 0x20, count: 65_536) + Array("\r\n".utf8)
        var count = 0
        while count < longestEndless, link.write(chunk) {
            count += 65_536
            let sent = count
            shared.state.with { $0.endlessBytes = sent }
        }
    }
}
