import CountersignAuthority
import CountersignHTTP
import CountersignWire

/// The route at which another proxy asks whether it may let a request through: who may ask, and what is asked
/// about. Source: docs/protocol.md, "Decide".
final class Decider: Sendable {
    /// The field in which a proxy shows the secret. It is told to nobody else.
    private static let secretField: StaticString = "countersign-decide"

    let dialect: DecideDialect
    private let secret: SharedToken
    private let proxies: TrustedProxies
    /// `/countersign/v1/decide`.
    private let path: [UInt8]
    private let limits: Limits
    private let rules: HeadRules

    /// Makes the secret's file where there is none yet. A ``Fault`` where no proxy is trusted: then nobody
    /// could ask.
    convenience init(_ dialect: DecideDialect, _ configuration: Configuration, secretAt file: String) throws(Fault) {
        guard !configuration.trustedProxies.isEmpty else {
            throw Fault(.usage, "--decide \(dialect.rawValue): expected --trusted-proxies, which says who may ask")
        }
        self.init(
            dialect, secret: try SharedToken(at: file), proxies: TrustedProxies(configuration.trustedProxies),
            path: configuration.prefix + "/decide", limits: configuration.limits, rules: configuration.headRules)
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

    /// Whether a request is for this route, from a proxy that may ask: to all others there is no such route.
    func isCalled(by request: borrowing Request, from peer: String) -> Bool {
        let called = request.head.span.extracting(request.path.range)
        let path = self.path
        guard called.count >= path.count, called.extracting(0..<path.count).matches(path.span) else { return false }
        let isWhole = called.count == path.count
        guard isWhole || dialect == .envoy && called[path.count] == UInt8(ascii: "/") else { return false }
        return proxies.isTrusted(peer: peer)
    }

    /// Whether the proxy shows the secret, once.
    func isAllowed(_ request: Request) -> Bool {
        guard let field = request.value(of: Decider.secretField) else { return false }
        return secret.isEqual(to: request.head.span.extracting(field.range))
    }

    /// Refuses what the proxy would pass on beside an identity, and a backend could believe: `Countersign-…`
    /// in another spelling, a field that names another caller, method or path, and an upgrade to a protocol
    /// in which nobody asks us again.
    func checkFields(of request: Request) throws(Refusal) {
        for field in request.fields where field.known == .other || field.known == .connection {
            let name = request.head.span.extracting(field.name.range)
            if CallerFields.isOursMisspelled(name)
                || CallerFields.tellsOtherThanProxies(name) && !isTheProxys(field, of: request)
            {
                throw Refusal(.forbidden, "decide: \(name.text) is for proxies and for us to say")
            }
            let value = request.head.span.extracting(field.value.range)
            if name.matches("http2-settings") || name.matches("upgrade") && !value.matchesWithoutCase("websocket") {
                throw Refusal(.forbidden, "decide: an upgrade to another protocol than websocket")
            }
        }
    }

    /// The request that the proxy asks about, read by the rules of any other; its body is not there.
    /// `transport` is how the client reached the proxy.
    func original(of request: Request, over transport: Request.Transport) throws(Refusal) -> Request {
        var head = try startLine(of: request)
        for field in request.fields where !isTheProxys(field, of: request) {
            Decider.append(field.name, of: request, to: &head)
            head.append(contentsOf: ": ".utf8)
            Decider.append(field.value, of: request, to: &head)
            head.append(contentsOf: "\r\n".utf8)
        }
        head.append(contentsOf: "\r\n".utf8)
        var original = Request()
        original.transport = transport
        var parser = HeadParser(limits: limits, rules: rules, transport: transport)
        guard let parsed = try parser.parse(head.span, into: &original), parsed.length == head.count else {
            throw Refusal(.malformed, "the request that the proxy asks about: its head does not end where it should")
        }
        original.transport = transport
        return original
    }

    /// With the `Host` line, which is the original's, too.
    private func startLine(of request: Request) throws(Refusal) -> [UInt8] {
        var (method, target, host) = (request.method, request.target, request.authority)
        if let names = dialect.names {
            method = try Decider.value(names.method, of: request)
            target = try Decider.value(names.target, of: request)
            host = try Decider.value(names.host, of: request)
        } else {
            // Behind the route, which Envoy puts in front of the target.
            target = Slice(Int(target.start) + path.count, Int(target.end))
        }
        var line: [UInt8] = []
        line.reserveCapacity(request.head.count + 64)
        Decider.append(method, of: request, to: &line)
        line.append(UInt8(ascii: " "))
        Decider.append(target, of: request, to: &line)
        line.append(contentsOf: " HTTP/1.1\r\nhost: ".utf8)
        Decider.append(host, of: request, to: &line)
        line.append(contentsOf: "\r\n".utf8)
        return line
    }

    private static func value(_ name: StaticString, of request: Request) throws(Refusal) -> Slice {
        guard let value = request.value(of: name), !value.isEmpty else {
            throw Refusal(.malformed, "\(name): expected once, from the proxy that asks")
        }
        return value
    }

    /// Whether the field says something of the asking request itself: it was not part of the one that is
    /// asked about, or was about a body that is not here.
    private func isTheProxys(_ field: Request.Field, of request: Request) -> Bool {
        func isNamed(_ name: StaticString) -> Bool { request.matches(field.name, name) }
        if let names = dialect.names, isNamed(names.method) || isNamed(names.target) || isNamed(names.host) {
            return true
        }
        return isNamed("host") || isNamed(Decider.secretField) || isNamed("content-length")
            || isNamed("transfer-encoding") || isNamed("connection") || isNamed("keep-alive") || isNamed("te")
            || isNamed("trailer") || isNamed("upgrade") || isNamed("expect") || isNamed("proxy-connection")
    }

    private static func append(_ slice: Slice, of request: Request, to bytes: inout [UInt8]) {
        request.head.span.extracting(slice.range).withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
    }
}
