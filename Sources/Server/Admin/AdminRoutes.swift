import CountersignHTTP
import CountersignThreads
import CountersignWire

/// Serves the routes below `/api/`, which check their own tokens.
package protocol AdminAPI: Sendable {
    /// `configuration` is that of the running server, and `figures` are its own. `caller` names the token,
    /// for the log; nil if none was valid.
    func answer(
        to exchange: any Exchange, in configuration: Configuration, figures: ServerFigures
    ) async -> (response: ServerResponse, caller: String?)
}

/// Serves the console's pages, which check their own sessions.
package protocol AdminConsole: Sendable {
    /// `configuration` is that of the running server, and `figures` are its own. `caller` names the session,
    /// for the log; nil if none was valid.
    func answer(
        to exchange: any Exchange, in configuration: Configuration, figures: ServerFigures
    ) async -> (response: ServerResponse, caller: String?, effect: ConsoleEffect)
}

/// The effect of a call to the console. It decides whether the log has a line.
package enum ConsoleEffect: Sendable {
    /// The console showed a page, or nothing.
    case showed
    /// The console exported data.
    case exported
    case changed
}

/// What the administrators' listener serves beside its own routes.
package struct AdminServices: Sendable {
    let api: any AdminAPI
    let console: any AdminConsole
    /// The threads on which the API and the console run commands.
    let commands: WorkPool

    package init(api: any AdminAPI, console: any AdminConsole, commands: WorkPool) {
        (self.api, self.console, self.commands) = (api, console, commands)
    }

    /// Seconds after which a command counts as hung.
    private static let mostSeconds = 30

    /// A warning if a command hangs; otherwise nil.
    var hang: String? {
        guard let milliseconds = commands.longestRun, milliseconds >= AdminServices.mostSeconds * 1_000 else {
            return nil
        }
        return
            """
            a command of the API or the console has run for \(milliseconds / 1_000) s, and others wait for it
            """
    }
}

/// The administrators' listener. `/health` and `/ready` reveal nothing that needs credentials; all other
/// routes require the admin token.
struct AdminRoutes: Handler {
    let token: AdminToken
    let metrics: Metrics
    let readiness: Readiness
    let drills: DrillControl
    /// Nil for a server without the API and the console.
    let services: AdminServices?
    let figures: ServerFigures
    let running: RunningConfiguration
    let log: EventLog?
    /// The loops that serve clients.
    let loops: [EventLoop]

    /// Milliseconds that `/metrics` waits for a loop that is busy.
    private static let mostWait = 100

    func handle(_ exchange: any Exchange) async {
        let request = exchange.request
        guard AdminRoutes.isAllowed(request, from: exchange.peer, mode: running.current.adminTLS) else {
            return await exchange.respond(.plainFromElsewhere)
        }
        if let services, request.isBelow("/api/") {
            let answer = await services.api.answer(
                to: exchange, in: running.current, figures: figures)
            logCall(on: exchange, status: answer.response.status, caller: answer.caller, subject: "api")
            return await exchange.respond(answer.response)
        }
        if let services,
            request.matches(request.path, text: "/") || request.matches(request.path, text: "/console")
                || request.isBelow("/console/")
        {
            let answer = await services.console.answer(
                to: exchange, in: running.current, figures: figures)
            // Page views are too frequent to log.
            if answer.effect != .showed || answer.caller == nil || answer.response.status >= 400 {
                logCall(
                    on: exchange, status: answer.response.status, caller: answer.caller, subject: "console")
            }
            return await exchange.respond(answer.response)
        }
        let isOperator = token.isPresented(by: request)
        if isOperator { exchange.recordProof(.release) }
        if request.matches(request.path, text: "/metrics"), isOperator {
            // A response is counted when it has been sent: its client may be the one that asks.
            await LoopBarrier.wait(for: loops, atMost: AdminRoutes.mostWait, on: exchange.loop)
        }
        guard request.matches(request.path, text: "/drill"), request.matches(request.method, text: "POST"),
            isOperator
        else { return await exchange.respond(answer(to: request, isOperator: isOperator)) }
        await exchange.respond(await drills.answer(to: exchange))
    }

    /// Whether the listener serves a request from that peer. Over plain HTTP, another machine would send its
    /// token in clear; `/health` and `/ready` reveal nothing secret.
    static func isAllowed(_ request: Request, from peer: String, mode: AdminTLSMode) -> Bool {
        guard mode == .off, !HostPort.isOfThisMachine(peer: peer) else { return true }
        return request.matches(request.path, text: "/health") || request.matches(request.path, text: "/ready")
    }

    /// A line for each call of the API, and for what is done or refused at the console, without its query.
    /// Calls without a valid token are sampled as other requests without proof are.
    private func logCall(on exchange: any Exchange, status: Int, caller: String?, subject kind: String) {
        guard let log else { return }
        let request = exchange.request
        let path = request.head.span.extracting(request.path.range).text
            .cut(toEscaped: RequestEvent.longestPath)
        let subject = RefusalSampler.Subject(
            cause: .answered(status: status), address: exchange.source.address)
        guard caller != nil || log.admits(subject, now: exchange.loop.seconds) else { return }
        let method = request.head.span.extracting(request.method.range).text
            .cut(toEscaped: RequestEvent.longestMethod)
        log.note(
            subject: kind, message: "\(caller ?? "no valid token"): \(method) \(path): \(status)")
    }

    private func answer(to request: Request, isOperator: Bool) -> ServerResponse {
        if request.matches(request.path, text: "/health") {
            return .healthy
        }
        if request.matches(request.path, text: "/ready") { return readiness.answer }
        guard isOperator else { return .unauthorized }
        if request.matches(request.path, text: "/drill") { return .otherMethod(allowed: "POST") }
        guard request.matches(request.path, text: "/metrics") else { return .notFound }
        guard request.matches(request.method, text: "GET") || request.matches(request.method, text: "HEAD")
        else {
            return .otherMethod(allowed: "GET, HEAD")
        }
        let format = MetricsFormat(
            accept: request.value(of: "accept").map {
                request.head.span.extracting($0.range).text
            } ?? "")
        return ServerResponse(status: 200, type: format.contentType, body: metrics.text(as: format))
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        await exchange.respond(
            ServerResponse(status: refusal.code.status, type: "text/plain", body: Array(refusal.detail.utf8)))
    }
}

extension Request {
    fileprivate func isBelow(_ prefix: StaticString) -> Bool {
        let length = prefix.utf8CodeUnitCount
        guard path.count >= length else { return false }
        return head.span.extracting(Int(path.start)..<Int(path.start) + length).matchesWithoutCase(prefix)
    }
}

extension ServerResponse {
    static let notFound = ServerResponse(
        status: 404, type: "application/problem+json",
        body: Array(#"{"type":"about:blank","title":"Not Found","status":404}"#.utf8))

    fileprivate static let plainFromElsewhere = ServerResponse(
        status: 403, type: "application/problem+json",
        body: Array(
            (#"{"type":"about:blank","title":"Forbidden","status":403,"code":"tls","detail":"over plain "#
                + #"HTTP other machines can call only /health and /ready: set --admin-tls on, or use a "#
                + #"tunnel such as `ssh -L 8444:127.0.0.1:8444 HOST`"}"#).utf8))

    /// Source: RFC 9110 §15.5.2, RFC 6750 §3.
    static let unauthorized = ServerResponse(
        status: 401, type: "application/problem+json",
        fields: [Field("WWW-Authenticate", value: #"Bearer realm="countersign""#)],
        body: Array(#"{"type":"about:blank","title":"Unauthorized","status":401}"#.utf8))

    static func otherMethod(allowed: String) -> ServerResponse {
        ServerResponse(
            status: 405, type: "application/problem+json", fields: [Field("Allow", value: allowed)],
            body: Array(#"{"type":"about:blank","title":"Method Not Allowed","status":405}"#.utf8))
    }
}
