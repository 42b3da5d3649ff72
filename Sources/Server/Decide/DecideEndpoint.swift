import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// How a proxy that asks for a decision names the request it asks about. Source: docs/protocol.md, "Decide".
public enum DecideDialect: String, Sendable, CaseIterable {
    /// `auth_request`.
    case nginx
    /// `forward_auth`.
    case caddy
    /// ForwardAuth.
    case traefik
    /// HTTP `ext_authz`.
    case envoy
    case haproxy

    /// The fields that name the request's method, target and host; nil if these are the asking request's own,
    /// with the target after the route's path.
    var names: (method: StaticString, target: StaticString, host: StaticString)? {
        switch self {
        case .nginx, .haproxy: ("x-original-method", "x-original-uri", "x-original-host")
        case .caddy, .traefik: ("x-forwarded-method", "x-forwarded-uri", "x-forwarded-host")
        case .envoy: nil
        }
    }
}

/// The route at which another proxy asks whether it may let a request through: checks which proxy asks, and
/// reads the request it asks about. Source: docs/protocol.md, "Decide".
final class DecideEndpoint: Sendable {
    /// The field in which a proxy presents the secret. The gateway sends it to no other party.
    private static let secretField: StaticString = "countersign-decide"

    let dialect: DecideDialect
    private let secret: SharedToken
    private let proxies: TrustedProxies
    /// `/countersign/v1/decide`.
    private let path: [UInt8]
    private let limits: Limits
    private let rules: HeadRules

    /// Creates the secret's file if it does not exist. Without trusted proxies, which contradicts
    /// ``Configuration/decide``, no proxy can ask.
    convenience init(_ dialect: DecideDialect, configuration: Configuration, secretAt file: String)
        throws(OperationalError)
    {
        self.init(
            dialect, secret: try SharedToken(at: file), proxies: TrustedProxies(configuration.trustedProxies),
            path: configuration.prefix + "/decide", limits: configuration.limits,
            rules: configuration.headRules)
    }

    init(
        _ dialect: DecideDialect, secret: SharedToken, proxies: TrustedProxies, path: String, limits: Limits,
        rules: HeadRules
    ) {
        self.dialect = dialect
        self.secret = secret
        self.proxies = proxies
        self.path = Array(path.utf8)
        self.limits = limits
        self.rules = rules
    }

    /// The same with other proxies, limits and rules. Where no proxy is left, no caller may ask.
    func replacing(proxies: TrustedProxies, limits: Limits, rules: HeadRules) -> DecideEndpoint {
        DecideEndpoint(copying: self, proxies: proxies, limits: limits, rules: rules)
    }

    private init(copying other: DecideEndpoint, proxies: TrustedProxies, limits: Limits, rules: HeadRules) {
        dialect = other.dialect
        secret = other.secret
        path = other.path
        self.proxies = proxies
        self.limits = limits
        self.rules = rules
    }

    /// Whether a request calls this route and comes from a proxy that may ask. For all other callers the
    /// route does not exist.
    func isCalled(by request: borrowing Request, from peer: String) -> Bool {
        let called = request.head.span.extracting(request.path.range)
        let path = self.path
        guard called.count >= path.count, called.extracting(0..<path.count).matches(path.span) else {
            return false
        }
        let isWhole = called.count == path.count
        guard isWhole || dialect == .envoy && called[path.count] == UInt8(ascii: "/") else { return false }
        return proxies.isTrusted(peer: peer)
    }

    /// Whether the proxy presents the secret, exactly once.
    func isAllowed(_ request: Request) -> Bool {
        guard let field = request.value(of: DecideEndpoint.secretField) else { return false }
        return secret.isEqual(to: request.head.span.extracting(field.range))
    }

    /// Refuses fields that the proxy would forward beside an identity and that a backend could trust:
    /// `Countersign-…` in another spelling, a field that names another caller, method or path, and an upgrade
    /// to a protocol whose later requests do not reach decide.
    func checkFields(of request: Request) throws(Refusal) {
        for field in request.fields where field.known == .other || field.known == .connection {
            let name = request.head.span.extracting(field.name.range)
            if ForbiddenCallerFields.isOursMisspelled(name)
                || ForbiddenCallerFields.tellsOtherThanProxies(name) && !isTheProxys(field, of: request)
            {
                throw Refusal(.forbidden, detail: "decide: \(name.text) is for proxies and for us to say")
            }
            let value = request.head.span.extracting(field.value.range)
            if name.matches("http2-settings")
                || name.matches("upgrade") && !value.matchesWithoutCase("websocket")
            {
                throw Refusal(.forbidden, detail: "decide: an upgrade to another protocol than websocket")
            }
        }
    }

    /// The request that the proxy asks about, parsed by the same rules as any other, without its body.
    /// `transport` is how the client reached the proxy.
    func original(of request: Request, over transport: Request.Transport) throws(Refusal) -> Request {
        var head = try startLine(of: request)
        for field in request.fields where !isTheProxys(field, of: request) {
            DecideEndpoint.append(field.name, of: request, to: &head)
            head.append(contentsOf: ": ".utf8)
            DecideEndpoint.append(field.value, of: request, to: &head)
            head.append(contentsOf: "\r\n".utf8)
        }
        head.append(contentsOf: "\r\n".utf8)
        var original = Request()
        original.transport = transport
        var parser = HeadParser(limits: limits, rules: rules, transport: transport)
        guard let parsed = try parser.parse(head.span, into: &original), parsed.length == head.count else {
            throw Refusal(
                .malformed,
                detail: "the request that the proxy asks about: its head does not end where it should")
        }
        original.transport = transport
        return original
    }

    /// Includes the `Host` line, which is the original's, too.
    private func startLine(of request: Request) throws(Refusal) -> [UInt8] {
        var (method, target, host) = (request.method, request.target, request.authority)
        if let names = dialect.names {
            method = try DecideEndpoint.value(names.method, of: request)
            target = try DecideEndpoint.value(names.target, of: request)
            host = try DecideEndpoint.value(names.host, of: request)
        } else {
            // Envoy puts the route in front of the target.
            target = ByteRange(from: Int(target.start) + path.count, to: Int(target.end))
        }
        var line: [UInt8] = []
        line.reserveCapacity(request.head.count + 64)
        DecideEndpoint.append(method, of: request, to: &line)
        line.append(UInt8(ascii: " "))
        DecideEndpoint.append(target, of: request, to: &line)
        line.append(contentsOf: " HTTP/1.1\r\nhost: ".utf8)
        DecideEndpoint.append(host, of: request, to: &line)
        line.append(contentsOf: "\r\n".utf8)
        return line
    }

    private static func value(_ name: StaticString, of request: Request) throws(Refusal) -> ByteRange {
        guard let value = request.value(of: name), !value.isEmpty else {
            throw Refusal(.malformed, detail: "\(name): expected once, from the proxy that asks")
        }
        return value
    }

    /// Whether the field belongs to the asking request itself: it was not part of the original request, or
    /// describes a body that is not here.
    private func isTheProxys(_ field: Request.Field, of request: Request) -> Bool {
        func isNamed(_ name: StaticString) -> Bool { request.matches(field.name, text: name) }
        if let names = dialect.names, isNamed(names.method) || isNamed(names.target) || isNamed(names.host) {
            return true
        }
        return isNamed("host") || isNamed(DecideEndpoint.secretField) || isNamed("content-length")
            || isNamed("transfer-encoding") || isNamed("connection") || isNamed("keep-alive") || isNamed("te")
            || isNamed("trailer") || isNamed("upgrade") || isNamed("expect") || isNamed("proxy-connection")
    }

    private static func append(_ slice: ByteRange, of request: Request, to bytes: inout [UInt8]) {
        request.head.span.extracting(slice.range).withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
    }
}

/// Answers another proxy that asks whether it may let a request through. 200 means yes; every refusal is 401
/// or 403, because some proxies take other statuses for an error of the gateway, or for yes. Source:
/// docs/protocol.md, "Decide".
extension Gateway {
    @inline(never)
    func decide(
        with decider: DecideEndpoint, exchange: any Exchange, request: Request, judgement: Judgement,
        event: RequestEvent
    ) async {
        do throws(Refusal) {
            try screen(exchange, event: event)
            guard decider.isAllowed(request) else {
                throw Refusal(
                    .forbidden, detail: "decide: a trusted proxy does not show the secret of decide-secret")
            }
            try decider.checkFields(of: request)
            var original = try decider.original(of: request, over: request.proxiedTransport)
            event.original = DecideSubject(original)
            let answer = try await decision(
                on: &original, exchange: exchange, judgement: judgement, event: event)
            await exchange.respond(answer)
        } catch {
            event.refusal = error
            count(error, of: event, named: judgement.release, on: exchange)
            await exchange.respond(Gateway.answer(error, event: event.id, now: clock.now))
        }
    }

    private func decision(
        on original: inout Request, exchange: any Exchange, judgement: Judgement, event: RequestEvent
    ) async throws(Refusal) -> ServerResponse {
        guard case .elsewhere = routes.find(original) else {
            throw Refusal(.forbidden, detail: "decide: the authority's own routes must be sent to it")
        }
        if original.names.contains(.countersignTicket) {
            throw Refusal(
                .decideNeedsBody,
                detail:
                    "an upload ticket is bound to a body, which decide does not see: "
                    + "send it through the gateway itself"
            )
        }
        if let legacy = routes.legacy, try legacy.mayBeCalled(by: original, keeping: &legacyScreen) {
            try await gate.identify(original, recordingIn: judgement)
            if try legacy.find(original, judgement: judgement) != nil { throw Gateway.needsBody }
        }
        let caller: Caller
        do {
            try await judgeProof(of: &original, exchange: exchange, judgement: judgement)
            caller = try await gate.judge(original, recordingIn: judgement, from: { network(of: exchange) })
        } catch {
            guard let passage = try gate.passThrough(for: original, judgement: judgement, after: error) else {
                throw error
            }
            event.passage = passage
            if let rules = passage.traffic {
                try checkTraffic(by: rules, of: original, from: nil, over: exchange, event: event)
            }
            return Gateway.allowed(
                identity.lines(for: passage, sending: original, over: exchange, event: event.id),
                checked: "nothing")
        }
        event.caller = caller
        if let rules = caller.release.traffic {
            try checkTraffic(by: rules, of: original, from: caller, over: exchange, event: event)
        }
        let lines = try identity.lines(
            for: caller, sending: original, leaving: [], over: exchange, event: event.id, at: clock.estimate)
        return Gateway.allowed(lines, checked: Gateway.checked(caller.body))
    }

    /// Ensures that the judgement needs no body. If the proof lies in the body, only the gateway itself can
    /// verify it.
    private func judgeProof(
        of original: inout Request, exchange: any Exchange, judgement: Judgement
    ) async throws(Refusal) {
        if original.isSafe { return }
        if original.names.contains(.signatureInput) {
            // A signature that covers a digest protects the digest; the backend must compare the body with
            // it.
            guard original.names.contains(.contentDigest) else { return }
            (original.bodyState, original.framing) = (.streaming, .length(1))
            return
        }
        (original.bodyState, original.framing) = (.awaited, .length(1))
        do {
            try await gate.waitingForLookups(of: judgement) { () throws(Refusal) in
                try gate.judgeHead(of: original, recordingIn: judgement, from: { network(of: exchange) })
            }
        } catch {
            // Unsigned, as far as the head shows.
            if error.code == .unsigned { (original.bodyState, original.framing) = (.whole, .none) }
            throw error
        }
        guard judgement.isProvenByHead else { throw Gateway.needsBody }
        original.bodyState = .streaming
    }

    private static let needsBody = Refusal(
        .decideNeedsBody,
        detail: "its proof lies in its body, which decide does not see: send it through the gateway itself")

    /// States what was checked, so that the proxy assumes no more.
    private static func checked(_ body: BodyExpectation) -> String {
        switch body {
        case .digests, .md5: "head; body=digest"
        default: "head; body=unseen"
        }
    }

    /// The fields that only the gateway may set about a caller (none about parts of a body, which decide does
    /// not see). Each answer contains all of them, empty if there is no value: a proxy that replaces the
    /// caller's fields by these then leaves none of the caller's.
    private static let identityFields = [
        "Countersign-App", "Countersign-Release", "Countersign-Platform", "Countersign-Version",
        "Countersign-Scheme",
        "Countersign-Account", "Countersign-User-Id", "Countersign-Session", "Countersign-Client",
        "Countersign-Event",
        "Countersign-Verdict",
        "Countersign-Assertion",
    ]

    /// `lines` are the field lines that a backend would receive.
    private static func allowed(_ lines: [UInt8], checked: String) -> ServerResponse {
        var said: [String: String] = [:]
        for line in String(decoding: lines, as: UTF8.self).split(separator: "\r\n") {
            guard let colon = line.firstIndex(of: ":") else { continue }
            said[String(line[..<colon])] = String(line[colon...].dropFirst(2))
        }
        return ServerResponse(
            status: 200, type: "text/plain",
            fields: [
                ServerResponse.Field("Cache-Control", value: "no-store"),
                ServerResponse.Field("Countersign-Checked", value: checked),
            ]
                + identityFields.map { ServerResponse.Field($0, value: said[$0] ?? "") },
            body: Array("allowed\n".utf8))
    }

    private static func answer(_ refusal: Refusal, event: EventID, now: Int64) -> ServerResponse {
        var answer = RefusalResponse.make(
            refusal, dialect: .problem, disclosure: .code, event: event, now: now)
        answer.status = refusal.code.status == 401 ? 401 : 403
        answer.fields.append(ServerResponse.Field("Countersign-Refusal", value: refusal.code.name))
        return answer
    }
}

extension Judgement {
    /// Whether its proof is in the head alone: a signature that covers no more of the body than a digest, or
    /// a token.
    fileprivate var isProvenByHead: Bool { claim.map { $0.inputSource == .head } ?? (tokenRelease != nil) }
}
