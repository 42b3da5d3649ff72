import CountersignHTTP
import CountersignWire

/// The administrators' listener. `/health` and `/ready` say nothing that needs credentials; all else wants the token.
struct AdminRoutes: Handler {
    let token: AdminToken
    let metrics: Metrics
    let readiness: Readiness

    func handle(_ exchange: any Exchange) async { await exchange.respond(answer(to: exchange.request)) }

    private func answer(to request: Request) -> Answer {
        if request.matches(request.path, "/health") {
            return .healthy
        }
        if request.matches(request.path, "/ready") { return readiness.answer }
        guard token.isShown(by: request) else { return .unauthorized }
        guard request.matches(request.path, "/metrics") else { return .notFound }
        guard request.matches(request.method, "GET") || request.matches(request.method, "HEAD") else {
            return .otherMethod(allowed: "GET, HEAD")
        }
        return Answer(status: 200, type: Exposition.type, body: metrics.text())
    }

    func refuse(_ refusal: Refusal, _ exchange: any Exchange) async {
        await exchange.respond(
            Answer(status: refusal.code.status, type: "text/plain", body: Array(refusal.detail.utf8)))
    }
}

extension Answer {
    static let notFound = Answer(
        status: 404, type: "application/problem+json",
        body: Array(#"{"type":"about:blank","title":"Not Found","status":404}"#.utf8))

    /// Source: RFC 9110 §15.5.2, RFC 6750 §3.
    static let unauthorized = Answer(
        status: 401, type: "application/problem+json",
        fields: [Field("WWW-Authenticate", #"Bearer realm="countersign""#)],
        body: Array(#"{"type":"about:blank","title":"Unauthorized","status":401}"#.utf8))

    static func otherMethod(allowed: String) -> Answer {
        Answer(
            status: 405, type: "application/problem+json", fields: [Field("Allow", allowed)],
            body: Array(#"{"type":"about:blank","title":"Method Not Allowed","status":405}"#.utf8))
    }
}
