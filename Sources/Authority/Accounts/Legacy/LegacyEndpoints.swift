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
        /// ambiguous, is written differently, is passed to a program, continues below the endpoint's path, or
        /// the method differs.
        case ambiguous(Policy.LegacyEndpoint)
    }

    /// One endpoint, prepared for comparison.
    struct Endpoint: Sendable {
        let kind: Policy.LegacyEndpoint
        let path: [UInt8]
        /// A backend may route all paths with this prefix to the endpoint: the endpoint's path without the
        /// extensions of scripts, which the backend may drop or change, and without a `/` at the end.
        let prefix: [UInt8]
        /// The call by GET and by POST; nil for a method that the endpoint does not accept.
        let get: LegacyCall?
        let post: LegacyCall?
    }

    /// Those about tokens come last: a policy may leave these to the backend, and a path that may be of two
    /// endpoints is treated as the first.
    let all: [Endpoint]

    package init(_ policy: Policy) {
        var endpoints = policy.legacyPaths.map { Endpoint($0) }
        if !endpoints.contains(where: { $0.kind == .login }) { endpoints += Endpoint.scriptsOfLogin }
        if !endpoints.contains(where: { $0.kind == .token }) { endpoints.append(Endpoint.scriptOfTokens) }
        all = endpoints.filter { !$0.isOfTokens } + endpoints.filter(\.isOfTokens)
    }

    var areDistinct: Bool { Set(all.map(\.path)).count == all.count }

    /// The endpoint that the request calls, or that a backend might route it to; nil for all other
    /// requests.
    package func match(for request: borrowing Request) -> Match? {
        let path = request.head.span.extracting(request.path.range)
        for endpoint in all where path.matches(endpoint.path.span) {
            return endpoint.call(by: request).map { .called($0) } ?? .ambiguous(endpoint.kind)
        }
        return all.first(inReach: path).map { .ambiguous($0.kind) }
    }
}

extension [LegacyEndpoints.Endpoint] {
    /// The first endpoint that a backend might route the path to: any if the path is ambiguous.
    fileprivate func first(inReach path: Span<UInt8>) -> Element? {
        let readings = PathReadings(path)
        if readings.ambiguity != nil { return first }
        for endpoint in self {
            if PathMatch(path, with: endpoint.prefix) != .none { return endpoint }
            for other in readings.others where PathMatch(other.span, with: endpoint.prefix) != .none {
                return endpoint
            }
        }
        return nil
    }
}

extension LegacyEndpoints.Endpoint {
    /// A path that the policy names takes all rungs: GET the query rung, POST the others.
    fileprivate init(_ named: Policy.LegacyPath) {
        kind = named.endpoint
        path = named.path
        prefix = Self.prefix(of: path)
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

    fileprivate var isOfTokens: Bool { kind == .token || kind == .logout }

    /// A list, other than the form by which a request's path names a program: in `/api/user.login` the name
    /// of the call is no extension.
    private static let extensionsOfScripts: [StaticString] = [
        "php", "php3", "php4", "php5", "php7", "php8", "phtml", "cgi", "fcgi", "pl", "py", "rb", "lua", "sh",
        "asp", "aspx", "ashx", "asmx", "axd", "jsp", "jspx", "jsf", "do", "action", "cfm", "exe", "dll",
    ]

    private static func prefix(of path: [UInt8]) -> [UInt8] {
        path.split(separator: UInt8(ascii: "/")).flatMap { name in
            let parts = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            let last = Array(parts[parts.count - 1])
            let isScript =
                name.count > last.count + 1
                && extensionsOfScripts.contains { last.span.matchesWithoutCase($0) }
            return [UInt8(ascii: "/")] + (isScript ? name.dropLast(last.count + 1) : name)
        }
    }

    private init(
        _ kind: Policy.LegacyEndpoint, at name: StaticString, get: LegacyCall? = nil, post: LegacyCall
    ) {
        let path = name.withUTF8Buffer { Array($0) }
        self.kind = kind
        self.path = path
        prefix = Self.prefix(of: path)
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

/// Selects requests that may call a legacy endpoint of some app, by their path. The
/// endpoints of the request's app then make the decision.
package final class LegacyPathFilter: Sendable {
    /// The deployment's generation when the filter was made: a later generation needs a new filter.
    package let generation: UInt64
    /// The endpoints of all apps, each path once.
    private let endpoints: [LegacyEndpoints.Endpoint]

    init(of apps: [LegacyApp], generation: UInt64) {
        self.generation = generation
        var paths: Set<[UInt8]> = []
        endpoints = apps.flatMap { $0.endpoints.all }.filter { paths.insert($0.path).inserted }
    }

    package func mayMatch(_ path: Span<UInt8>) -> Bool {
        !endpoints.isEmpty && endpoints.first(inReach: path) != nil
    }
}
