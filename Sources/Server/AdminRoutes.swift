import CountersignHTTP
import CountersignWire

/// The administrators' listener. Only `/health` so far, which says nothing that needs credentials.
struct AdminRoutes: Handler {
    func handle(_ exchange: any Exchange) async {
        let request = exchange.request
        if request.matches(request.path, "/health") {
            await exchange.respond(
                Answer(status: 200, type: "application/json", body: Array("{\"status\":\"ok\"}\n".utf8)))
        } else {
            await exchange.respond(.notFound)
        }
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
}
