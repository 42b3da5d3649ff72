import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// One of the authority's own routes, below the prefix. Source: docs/protocol.md, "Routes".
struct Route: Sendable {
    /// Which callers may call it.
    enum Admission: Sendable, CaseIterable {
        /// Every caller, with or without a signature. A body is not read.
        case anyone
        /// A caller that signs as a live release.
        case release
        /// A caller that signs as a live session.
        case session
        /// The same, also with an expired token: for the route that ends the session.
        case endingSession
    }

    /// Bytes of a request's body on any of these routes: what they read is small.
    static let mostBodyBytes = 64 << 10

    /// HEAD is accepted where GET is.
    let method: StaticString
    /// Below the prefix, beginning with `/`. A last part `*` takes any one part, which is
    /// ``RouteCall/parameter``.
    let path: StaticString
    let admission: Admission
    /// What the metrics count of it; nil if they do not.
    var operation: AuthorityOperation?
    let answer: @Sendable (RouteCall) async throws(Refusal) -> RouteResult

    init(
        _ description: RouteDescription,
        answer: @escaping @Sendable (RouteCall) async throws(Refusal) -> RouteResult
    ) {
        (method, path) = (description.method, description.path)
        (admission, operation) = (description.admission, description.operation)
        self.answer = answer
    }
}

/// A call of a route, once its caller was judged.
struct RouteCall: Sendable {
    let request: Request
    /// Nil for routes that need no authentication.
    let caller: Caller?
    /// The release that a legacy client's unsigned call claims, if its app accepts tokens alone.
    var unsigned: AppRelease?
    /// The client's address.
    let address: ClientAddress
    let event: EventID
    /// The last part of the path, if the route leaves it open.
    let parameter: String
    /// Whole Unix seconds.
    let now: Int64
}

struct RouteResult: Sendable {
    var answer: ServerResponse
    /// Signs the answer in place of the key that its caller signed with: the key of a session that this
    /// answer begins or renews, or the authority's for an answer that a client trusts although its request
    /// has no signature.
    var signer: Credentials?
    /// What the signature must bind the answer to; if it cannot, the answer is not signed. `content` is for
    /// answers that repeat a value of the request.
    var binding = MessageSignatures.Binding.request

    init(_ answer: ServerResponse) { self.answer = answer }

    /// JSON with `Cache-Control: no-store`.
    init(
        _ body: JSONValue, status: Int = 200, fields: [ServerResponse.Field] = [], signer: Credentials? = nil
    ) {
        answer = ServerResponse(
            status: status, type: "application/json",
            fields: [ServerResponse.Field("Cache-Control", value: "no-store")] + fields,
            body: Array((body.text + "\n").utf8))
        self.signer = signer
    }
}

/// The authority's own routes, and how paths below the prefix without a route are answered.
struct RouteTable: Sendable {
    enum Match: Sendable {
        case route(Route, parameter: String)
        /// The path has a route, but not for this method.
        case otherMethod(allowed: String)
        /// Below the prefix, and no route: not forwarded to the upstream all the same.
        case nothing
        /// Not below the prefix.
        case elsewhere
    }

    private let prefix: [UInt8]
    private let routes: [Route]
    /// The routes outside the prefix, which an app's policy opens; nil for a server without accounts.
    let legacy: LegacyRoutes?
    /// Apps' own refusal texts; nil for a server without apps.
    let texts: ReleaseKeyDirectory?

    init(prefix: String, routes: [Route], legacy: LegacyRoutes? = nil, texts: ReleaseKeyDirectory? = nil) {
        self.prefix = Array(prefix.utf8)
        self.routes = routes
        self.legacy = legacy
        self.texts = texts
    }

    func find(_ request: borrowing Request) -> Match {
        let path = request.head.span.extracting(request.path.range)
        guard path.count >= prefix.count else { return .elsewhere }
        for index in prefix.indices where path[index] != prefix[index] { return .elsewhere }
        let rest = path.extracting(prefix.count..<path.count)
        guard rest.isEmpty || rest[0] == UInt8(ascii: "/") else { return .elsewhere }
        var allowed: [String] = []
        for route in routes {
            guard let parameter = route.parameter(of: rest) else { continue }
            let isRead = route.isRead && request.matches(request.method, text: "HEAD")
            if isRead || request.matches(request.method, text: route.method) {
                return .route(route, parameter: parameter)
            }
            allowed.append(route.isRead ? "GET, HEAD" : "\(route.method)")
        }
        return allowed.isEmpty ? .nothing : .otherMethod(allowed: allowed.joined(separator: ", "))
    }
}

extension Route {
    fileprivate var isRead: Bool { "\(method)" == "GET" }

    /// The part in place of `*`; empty for a path without `*`; nil for another path.
    fileprivate func parameter(of path: Span<UInt8>) -> String? {
        let length = self.path.utf8CodeUnitCount
        let own = UnsafeBufferPointer(start: self.path.utf8Start, count: length)
        guard own.last == UInt8(ascii: "*") else { return path.matches(self.path) ? "" : nil }
        guard path.count >= length else { return nil }
        for index in 0..<length - 1 where path[index] != own[index] { return nil }
        let last = path.extracting((length - 1)...)
        for index in 0..<last.count where last[index] == UInt8(ascii: "/") { return nil }
        return last.text
    }
}
