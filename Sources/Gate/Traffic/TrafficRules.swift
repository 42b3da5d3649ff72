import CountersignWire

/// The traffic that an app takes, apart from what requests prove: rates, addresses, maintenance and origins.
/// Source: docs/decisions/0084-traffic-rules.md.
package struct TrafficRules: Sendable, Equatable {
    /// Of all the app's requests to the backend together.
    package var rates = RequestRates()
    /// Empty for all addresses.
    package var allowedAddresses: [NetworkRange] = []
    /// These are refused even if they are allowed.
    package var deniedAddresses: [NetworkRange] = []
    /// Seconds after which a client is told to try again; nil if the app is not in maintenance.
    package var maintenance: Int?
    package var crossOrigin = CrossOriginRules()

    package init() {}

    package var isEmpty: Bool { self == TrafficRules() }

    /// Whether a client of that address is served. One whose address is unknown may have any: it is served
    /// only where all are.
    package func admits(_ address: NetworkAddress?) -> Bool {
        guard let address else { return allowedAddresses.isEmpty && deniedAddresses.isEmpty }
        if deniedAddresses.contains(address) { return false }
        return allowedAddresses.isEmpty || allowedAddresses.contains(address)
    }
}

/// What one route takes, beyond the app's and the server's limits.
package struct RouteLimits: Sendable, Equatable {
    /// Of the requests to the routes of the rule together.
    package var rates = RequestRates()
    /// The most bytes of a body; nil for the server's limit.
    package var bodyBytes: Int?
    /// The most bytes of a head; nil for the server's limit.
    package var headBytes: Int?

    package init() {}

    package var isEmpty: Bool { self == RouteLimits() }

    /// Those that are set, in a fixed order.
    package var texts: [(name: String, value: String)] {
        var texts: [(name: String, value: String)] = RequestRates.Subject.allCases.compactMap { subject in
            rates[subject].map { (name: "rate-\(subject.rawValue)", value: $0.text) }
        }
        if let bodyBytes { texts.append(("max-body", String(bodyBytes))) }
        if let headBytes { texts.append(("max-head", String(headBytes))) }
        return texts
    }
}

/// The traffic rules of one app, with those of its routes. A class, so that callers share it.
package final class AppTraffic: Sendable {
    package let app: String
    package let rules: TrafficRules
    package let routes: RouteRules

    /// Nil if nothing of the policy is about traffic: then a request pays for one comparison.
    package init?(app: String, policy: Policy) {
        guard !policy.traffic.isEmpty || policy.routes.limitTraffic else { return nil }
        self.app = app
        var rules = policy.traffic
        // A browser's cookies belong to one app, and a preflight request identifies its app only by the host.
        if policy.legacyHost == nil { rules.crossOrigin = rules.crossOrigin.withoutCookies }
        self.rules = rules
        routes = policy.routes
    }

    /// The rules whose limits apply to the request.
    package func limitingRules(for request: Request) throws(Refusal) -> [RouteRule] {
        guard routes.limitTraffic else { return [] }
        return try routes.limiting(
            method: request.head.span.extracting(request.method.range),
            path: request.head.span.extracting(request.path.range))
    }
}
