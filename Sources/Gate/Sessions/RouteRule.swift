import CountersignWire

extension Policy {
    /// Whether some of the backend's routes ask for more than others.
    var hasRouteRules: Bool {
        anonymous.isByRoute || deviceSigned.isByRoute
    }

    /// Refuses a path that a backend could take for another route than we do, where that makes a difference.
    /// Rules are applied to the target's raw bytes, which are what is forwarded.
    func checkPath(of request: Request) throws(Refusal) {
        guard hasRouteRules else { return }
        if let ambiguity = LoosePath.ambiguity(of: request.head.span.extracting(request.path.range)) {
            throw Refusal(
                .malformed, "the path has \(ambiguity); where routes ask for different things it must have one reading")
        }
    }
}

/// Which of the backend's routes a release opens without a session.
extension Policy.RouteSet {
    /// Whether it holds some routes, neither none nor all.
    fileprivate var isByRoute: Bool {
        guard case .under(let routes) = self else { return false }
        return !routes.isEmpty
    }

    func admit(_ request: Request) throws(Refusal) {
        guard case .under(let routes) = self else { return }
        let path = request.head.span.extracting(request.path.range)
        for route in routes where path.isAt(or: route.span) { return }
        throw Refusal(.sessionEnded, "this route needs a session")
    }
}

extension Span<UInt8> {
    /// Whether this path is `route`, or goes on behind it with a `/`.
    fileprivate func isAt(or route: Span<UInt8>) -> Bool {
        guard count >= route.count, extracting(0..<route.count).matches(route) else { return false }
        return count == route.count || self[route.count] == UInt8(ascii: "/")
    }
}
