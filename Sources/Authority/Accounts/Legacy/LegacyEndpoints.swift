import CountersignGate
import CountersignSchemes
import CountersignWire

/// The operation that a legacy client requests.
package enum LegacyCall: Sendable, Equatable {
    /// Signs in accounts whose rung uses one of these endpoints.
    case login([Rung.LoginEndpoint])
    case logout
    case token
    /// The endpoint is that of the plain rung of the request's method.
    case signUp(Rung.LoginEndpoint)
    /// Changes a password; the endpoints apply to the old password, as in ``login(_:)``.
    case password([Rung.LoginEndpoint])
}

/// The legacy endpoints of one app: the paths that its policy names or, for login and tokens if it names
/// none, the known PHP scripts. Source: docs/protocol.md, "The login ladder".
package struct LegacyEndpoints: Sendable {
    /// How a request's target is read, by the gateway and by a backend that has these paths too.
    package enum Match: Sendable, Equatable {
        case called(LegacyCall)
        /// A backend might route the request to this endpoint, but the gateway does not: the path is
        /// written differently, is passed to a program, continues below the endpoint's path, or the method
        /// differs.
        case ambiguous(Policy.LegacyEndpoint)
    }

    /// One endpoint, prepared for comparison.
    struct Endpoint: Sendable {
        let kind: Policy.LegacyEndpoint
        let path: [UInt8]
        let loose: LoosePath
        /// The call by GET and by POST; nil for a method that the endpoint does not accept.
        let get: LegacyCall?
        let post: LegacyCall?
    }

    let all: [Endpoint]

    package init(_ policy: Policy) {
        var endpoints = policy.legacyPaths.map { Endpoint($0) }
        if !endpoints.contains(where: { $0.kind == .login }) { endpoints += Endpoint.scriptsOfLogin }
        if !endpoints.contains(where: { $0.kind == .token }) { endpoints.append(Endpoint.scriptOfTokens) }
        all = endpoints
    }

    /// Whether all paths differ and each has at least one segment.
    var areDistinct: Bool { Set(all.map(\.path)).count == all.count && all.allSatisfy { $0.loose.count > 0 } }

    /// The endpoint that the request calls, or that a backend might route it to; nil for all other
    /// requests.
    package func match(for request: borrowing Request) -> Match? {
        let path = request.head.span.extracting(request.path.range)
        for endpoint in all where path.matches(endpoint.path.span) {
            return endpoint.call(by: request).map { .called($0) } ?? .ambiguous(endpoint.kind)
        }
        guard let readings = LoosePath.readings(of: path) else {
            return all.first.map { .ambiguous($0.kind) }
        }
        return all.first { endpoint in readings.contains { $0.isAtOrBelow(endpoint.loose) } }
            .map { .ambiguous($0.kind) }
    }
}

extension LegacyEndpoints.Endpoint {
    /// A path that the policy names takes all rungs: GET the query rung, POST the others.
    fileprivate init(_ named: Policy.LegacyPath) {
        kind = named.endpoint
        path = named.path
        loose = LoosePath(named.path.span)
        switch named.endpoint {
        case .login:
            get = .login([.query])
            post = .login([.form, .minute])
        case .logout:
            get = .logout
            post = .logout
        case .token:
            get = .token
            post = .token
        case .signUp:
            get = .signUp(.query)
            post = .signUp(.form)
        case .password:
            get = .password([.query])
            post = .password([.form, .minute])
        }
    }

    private init(
        _ kind: Policy.LegacyEndpoint, at name: StaticString, get: LegacyCall? = nil, post: LegacyCall
    ) {
        let path = name.withUTF8Buffer { Array($0) }
        self.kind = kind
        self.path = path
        loose = LoosePath(path.span)
        self.get = get
        self.post = post
    }

    fileprivate static let scriptsOfLogin = [
        Self(.login, at: "/login/login.php", get: .login([.query]), post: .login([.form])),
        Self(.login, at: "/login/loginhmac.php", post: .login([.minute])),
    ]
    fileprivate static let scriptOfTokens = Self(.token, at: "/login/token.php", post: .token)

    fileprivate func call(by request: borrowing Request) -> LegacyCall? {
        if request.matches(request.method, text: "GET") { return get }
        return request.matches(request.method, text: "POST") ? post : nil
    }
}

/// Selects requests that may call a legacy endpoint of some app, by their path and without allocating. The
/// endpoints of the request's app then make the decision.
package final class LegacyPathFilter: Sendable {
    /// The deployment's generation when the filter was made: a later generation needs a new filter.
    package let generation: UInt64
    /// The endpoints of all apps, each path once.
    private let endpoints: [LegacyEndpoints.Endpoint]
    /// The last segments of the endpoints' paths, in lower case.
    private let names: [[UInt8]]
    /// Bit `b % 64` of word `b / 64` is set if a name begins with the byte `b`.
    private let beginnings: InlineArray<4, UInt64>

    init(of apps: [LegacyApp], generation: UInt64) {
        self.generation = generation
        var paths: Set<[UInt8]> = []
        let endpoints = apps.flatMap { $0.endpoints.all }.filter { paths.insert($0.path).inserted }
        var beginnings = InlineArray<4, UInt64>(repeating: 0)
        var names: Set<[UInt8]> = []
        for endpoint in endpoints where endpoint.loose.count > 0 {
            let name = Array(endpoint.loose[endpoint.loose.count - 1])
            names.insert(name)
            beginnings[Int(name[0]) / 64] |= 1 << UInt64(name[0] % 64)
        }
        self.endpoints = endpoints
        self.names = Array(names)
        self.beginnings = beginnings
    }

    package func mayMatch(_ path: Span<UInt8>) -> Bool {
        guard !endpoints.isEmpty, mayContainName(path) else { return false }
        for endpoint in endpoints where path.matches(endpoint.path.span) { return true }
        guard let readings = LoosePath.readings(of: path) else { return true }
        return endpoints.contains { endpoint in readings.contains { $0.isAtOrBelow(endpoint.loose) } }
    }

    /// Whether a segment of the path begins with an endpoint's last segment, or percent-escapes or
    /// non-ASCII bytes might hide one.
    private func mayContainName(_ path: Span<UInt8>) -> Bool {
        var isStart = true
        for index in 0..<path.count {
            let byte = path[index]
            if byte == UInt8(ascii: "%") || byte >= 0x80 { return true }
            if byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") {
                isStart = true
            } else if isStart {
                isStart = false
                let first = ASCII.lowercased(byte)
                if beginnings[Int(first) / 64] & 1 << UInt64(first % 64) != 0,
                    isName(at: path.extracting(index...))
                {
                    return true
                }
            }
        }
        return false
    }

    private func isName(at text: Span<UInt8>) -> Bool {
        for name in names where name.count <= text.count {
            var length = 0
            while length < name.count, ASCII.lowercased(text[length]) == name[length] { length += 1 }
            if length == name.count { return true }
        }
        return false
    }
}
