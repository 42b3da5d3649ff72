import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignServer
import CountersignThreads
import CountersignWire

/// Serves the console: pages for operators on the admin listener. Every page is made on the server and works
/// without a script; what it shows and does are operations of the admin API, run on the same thread. Source:
/// docs/decisions/0088-console.md.
final class ConsoleService: AdminConsole {
    /// The name begins so that browsers accept it from this very host alone, and over TLS or on the own
    /// machine. Source: RFC 6265bis §4.1.3.2.
    private static let cookie = "__Host-countersign"
    private static let mostFormBytes = 64 << 10

    private let environment: Environment
    private let pool: WorkPool
    private let tokens = APITokenCheck()
    private let uses = SessionUses()

    init(environment: Environment, pool: WorkPool) {
        self.environment = environment
        self.pool = pool
    }

    func answer(
        to exchange: any Exchange, in configuration: Configuration, figures: ServerFigures
    ) async -> (response: ServerResponse, caller: String?) {
        let path = exchange.request.head.span.extracting(exchange.request.path.range).text
        if let asset = ConsoleAsset.all.first(where: { $0.path == path }) {
            return (asset.response, nil)
        }
        var caller: String?
        do throws(APIProblem) {
            let client = try client(of: exchange, configuration: configuration)
            let request = try await read(exchange, from: client)
            if request.segments == ["sign-in"] {
                return (try await signIn(request, configuration: configuration), nil)
            }
            guard let session = try session(of: exchange.request, configuration: configuration),
                await isInUse(session, configuration: configuration)
            else {
                return (ConsoleService.signedOut(asking: request), nil)
            }
            caller = "\(session.token.name) (\(session.token.id))"
            let response = try await serve(
                request, for: session, configuration: configuration, figures: figures)
            return (response, caller)
        } catch {
            return (.page(ConsolePage(error).markupAlone, status: error.status, fields: error.fields), caller)
        }
    }

    // MARK: Callers

    private struct Client {
        /// As the Host field has it.
        let host: String
        let isEncrypted: Bool
    }

    /// Refuses hosts that are not the console's (DNS rebinding), and other machines without TLS: the cookie
    /// opens the deployment.
    private func client(
        of exchange: any Exchange, configuration: Configuration
    ) throws(APIProblem) -> Client {
        try APIRouter.checkHost(of: exchange.request, configuration: configuration)
        let isEncrypted = configuration.adminTLS == .on
        guard isEncrypted || HostPort.isOfThisMachine(peer: exchange.peer) else {
            throw APIProblem(
                403, code: "tls",
                detail:
                    "the console is served to other machines over TLS alone: set --admin-tls, or use a "
                    + "tunnel such as `ssh -L 8444:127.0.0.1:8444 HOST`")
        }
        let authority = exchange.request.authority.range
        return Client(
            host: exchange.request.head.span.extracting(authority).text, isEncrypted: isEncrypted)
    }

    private struct Session {
        let token: APIToken
        let formToken: FormToken
    }

    private func session(
        of request: Request, configuration: Configuration
    ) throws(APIProblem) -> Session? {
        guard let text = request.cookie(ConsoleService.cookie) else { return nil }
        let bytes = Array(text.utf8)
        guard let token = try tokens.token(bytes.span, of: .console, configuration: configuration) else {
            return nil
        }
        return Session(token: token, formToken: FormToken(ofSession: text))
    }

    /// Ends a session that was not used for long; false if this one is ended.
    private func isInUse(_ session: Session, configuration: Configuration) async -> Bool {
        if uses.use(session.token.id, at: EventLoop.monotonicSeconds()) { return true }
        let host = CommandHost(configuration, actor: session.token.actor)
        let (environment, id) = (environment.variables, session.token.id)
        _ = await onCommandThread { () -> Result<Void, APIProblem> in
            defer { host.close() }
            try? host.open(environment: environment).endConsoleSession(id, at: SystemTime().now)
            return .success(())
        }
        return false
    }

    // MARK: Reading

    private func read(
        _ exchange: any Exchange, from client: Client
    ) async throws(APIProblem) -> ConsoleRequest {
        let request = exchange.request
        let span = request.head.span
        let path = span.extracting(request.path.range).text
        let segments = path == "/" ? [] : try APIRouter.segments(of: path.dropFirst("/console".utf8.count))
        let query = request.query.map { span.extracting($0.range).text } ?? ""
        let pairs = try ConsoleRequest.pairs(in: Array(query.utf8))
        let target = query.isEmpty ? path : "\(path)?\(query)"
        let method: ConsoleRequest.Method
        if request.matches(request.method, text: "GET") || request.matches(request.method, text: "HEAD") {
            method = .read
        } else {
            guard request.matches(request.method, text: "POST") else {
                throw APIRouter.otherMethod(allowed: ["GET", "HEAD", "POST"])
            }
            guard request.isSentByOwnPage(at: client.host, isEncrypted: client.isEncrypted) else {
                throw APIProblem(403, code: "origin", detail: "a page of another site has sent this form")
            }
            method = .submit(try await ConsoleService.form(of: exchange))
        }
        return ConsoleRequest(method: method, segments: segments, query: pairs, target: target)
    }

    private static func form(of exchange: any Exchange) async throws(APIProblem) -> [String: String] {
        do throws(Refusal) {
            try await exchange.readWholeBody(atMost: mostFormBytes)
        } catch {
            throw APIProblem(
                error.code == .tooLarge ? 413 : 400, code: "invalid",
                detail: "a form is limited to \(mostFormBytes) bytes")
        }
        return try ConsoleRequest.pairs(in: exchange.request.body)
    }

    // MARK: Signing in

    /// The link's page shows a button: what fetches links in advance does not use them up.
    private func signIn(
        _ request: ConsoleRequest, configuration: Configuration
    ) async throws(APIProblem) -> ServerResponse {
        guard case .submit(let form) = request.method else {
            return .page(SignInPage.markup(code: request.value("code")))
        }
        let code = Array((form["code"] ?? "").utf8)
        // Strangers do not make the server open the deployment.
        guard try tokens.token(code.span, of: .link, configuration: configuration) != nil else {
            return .page(SignInPage.markup(code: ""), status: 403)
        }
        let host = CommandHost(configuration, actor: .server)
        let environment = environment.variables
        let outcome = await onCommandThread { () -> Result<(APIToken, String)?, APIProblem> in
            defer { host.close() }
            do throws(OperationalError) {
                let deployment = try host.open(environment: environment)
                return .success(try deployment.redeemConsoleLink(code.span, at: SystemTime().now))
            } catch {
                return .failure(APIProblem(error))
            }
        }
        guard let (session, text) = try outcome.get() else {
            return .page(SignInPage.markup(code: ""), status: 403)
        }
        let left = max(0, (session.expires ?? 0) - SystemTime().now)
        let cookie =
            "\(ConsoleService.cookie)=\(text); Path=/; Max-Age=\(left); Secure; HttpOnly; SameSite=Strict"
        return .seeOther("/", fields: [ServerResponse.Field("Set-Cookie", value: cookie)])
    }

    private static func signedOut(asking request: ConsoleRequest) -> ServerResponse {
        .page(SignInPage.markup(code: ""), status: 401)
    }

    // MARK: Pages

    private func serve(
        _ request: ConsoleRequest, for session: Session, configuration: Configuration,
        figures: ServerFigures
    ) async throws(APIProblem) -> ServerResponse {
        if case .submit(let form) = request.method {
            guard let sent = form["form"], session.formToken.isPresented(as: sent) else {
                throw APIProblem(
                    403, code: "form", detail: "this form is not of your session; load its page again")
            }
        }
        let visit = ConsoleVisit(
            session: session.token, formToken: session.formToken, figures: figures,
            host: CommandHost(configuration, actor: session.token.actor), environment: environment,
            now: SystemTime().now)
        if request.segments == ["live"] { return LiveFigures(visit).response }
        let outcome = await onCommandThread { () -> Result<ServerResponse, APIProblem> in
            do throws(APIProblem) {
                return .success(try ConsoleService.response(to: request, of: visit))
            } catch {
                return .success(.page(ConsolePage(error).markup(for: visit), status: error.status))
            }
        }
        return try outcome.get()
    }

    private static func response(
        to request: ConsoleRequest, of visit: ConsoleVisit
    ) throws(APIProblem) -> ServerResponse {
        switch try ConsoleRoutes.answer(to: request, of: visit) {
        case .page(let page): return .page(page.markup(for: visit), status: page.status)
        case .redirect(let path): return .seeOther(path, fields: signOutFields(after: request))
        case .download(let name, let body):
            return ServerResponse(
                status: 200, type: "application/json",
                fields: ConsoleFields.unstored + [
                    ServerResponse.Field("Content-Disposition", value: "attachment; filename=\"\(name)\"")
                ], body: body)
        }
    }

    /// Has the browser drop all that it keeps of the console.
    private static func signOutFields(after request: ConsoleRequest) -> [ServerResponse.Field] {
        guard request.segments == ["sign-out"] else { return [] }
        return [
            ServerResponse.Field(
                "Set-Cookie", value: "\(cookie)=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict"),
            ServerResponse.Field("Clear-Site-Data", value: "\"cache\", \"storage\""),
        ]
    }

    private func onCommandThread<Value: Sendable>(
        _ work: @escaping @Sendable () -> Result<Value, APIProblem>
    ) async -> Result<Value, APIProblem> {
        do {
            return try await pool.run(work)
        } catch {
            return .failure(
                APIProblem(503, code: "unavailable", detail: "too many calls wait; try again later"))
        }
    }
}

/// When each session was last used, in memory: one without use ends early.
final class SessionUses: Sendable {
    /// Seconds.
    static let longestPause: Int64 = 30 * 60

    private let last = Locked<[String: Int64]>([:])

    /// False if the session has not been used for too long. `now` is in seconds of a clock that does not go
    /// back.
    func use(_ id: String, at now: Int64) -> Bool {
        last.with { last in
            // Those of ended sessions go, too; the file holds few at a time.
            if last.count > 1_024 { last = last.filter { now - $0.value <= SessionUses.longestPause } }
            if let previous = last[id], now - previous > SessionUses.longestPause { return false }
            last[id] = now
            return true
        }
    }
}
