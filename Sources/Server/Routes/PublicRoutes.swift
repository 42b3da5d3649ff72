import CountersignHTTP

extension Route {
    /// What anybody may ask: whether we serve, and the keys that backends verify assertions with.
    static func open(_ assertionKeys: AssertionKeys) -> [Route] {
        [
            Route(method: "GET", path: "/health", admission: .anyone) { _ in RouteAnswer(.healthy) },
            Route(method: "GET", path: "/jwks", admission: .anyone) { call in
                RouteAnswer(assertionKeys.answer(at: call.now))
            },
        ]
    }
}

extension Answer {
    static let healthy = Answer(status: 200, type: "application/json", body: Array("{\"status\":\"ok\"}\n".utf8))
}
