import CountersignAuthority
import CountersignHTTP
import CountersignWire

/// The authority's own routes, and what stands below the prefix without being one.
struct RouteTable: Sendable {
    enum Found: Sendable {
        case route(Route, parameter: String)
        /// The path is one of ours, and not for this method.
        case otherMethod(allowed: String)
        /// Below the prefix, and nothing there: kept from the upstream all the same.
        case nothing
        /// Not below the prefix.
        case elsewhere
    }

    private let prefix: [UInt8]
    private let routes: [Route]
    /// Those outside the prefix, which an app's policy opens; nil for a server without accounts.
    let legacy: LegacyRoutes?
    /// Apps' own words for refusals; nil for a server without apps.
    let texts: LiveKeys?

    init(prefix: String, _ routes: [Route], legacy: LegacyRoutes? = nil, texts: LiveKeys? = nil) {
        self.prefix = Array(prefix.utf8)
        self.routes = routes
        self.legacy = legacy
        self.texts = texts
    }

    func find(_ request: borrowing Request) -> Found {
        let path = request.head.span.extracting(request.path.range)
        guard path.count >= prefix.count else { return .elsewhere }
        for index in prefix.indices where path[index] != prefix[index] { return .elsewhere }
        let rest = path.extracting(prefix.count..<path.count)
        guard rest.isEmpty || rest[0] == UInt8(ascii: "/") else { return .elsewhere }
        var allowed: [String] = []
        for route in routes {
            guard let parameter = route.parameter(of: rest) else { continue }
            let isRead = route.isRead && request.matches(request.method, "HEAD")
            if isRead || request.matches(request.method, route.method) { return .route(route, parameter: parameter) }
            allowed.append(route.isRead ? "GET, HEAD" : "\(route.method)")
        }
        return allowed.isEmpty ? .nothing : .otherMethod(allowed: allowed.joined(separator: ", "))
    }
}

extension Route {
    fileprivate var isRead: Bool { "\(method)" == "GET" }

    /// What stands for `*`; empty for a path without; nil for another path.
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
