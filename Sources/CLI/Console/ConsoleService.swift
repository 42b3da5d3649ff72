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

    /// The most bytes of the form of a caller without a session.
    private static let mostSignInBytes = 4 << 10

    private let environment: Environment
    private let deployment: AdministeredDeployment
    private let pool: WorkPool
    /// For what only reads and takes seconds: one at a time, and no queue behind it.
    private let doctorPool: WorkPool
    private let tokens = APITokenCheck()
    private let answers = KeptAnswerTable()
    /// Sessions that were signed out, whether or not the file could be written.
    private let signedOut = Locked<Set<String>>([])

    init(
        environment: Environment, deployment: AdministeredDeployment, pool: WorkPool
    ) throws(OperationalError) {
        self.environment = environment
        self.deployment = deployment
        self.pool = pool
        doctorPool = try WorkPool(
            WorkPool.Bounds(workers: 1, queue: 1, patience: 250), for: .administration)
    }

    func answer(
        to exchange: any Exchange, in configuration: Configuration, figures: ServerFigures
    ) async -> (response: ServerResponse, caller: String?, effect: ConsoleEffect) {
        var caller: String?
        do throws(APIProblem) {
            let client = try client(of: exchange, configuration: configuration)
            let path = exchange.request.head.span.extracting(exchange.request.path.range).text
            if let asset = ConsoleAsset.all.first(where: { $0.path == path }) {
                return (asset.response, nil, .showed)
            }
            if path == "/console" || path == "/console/" { return (.seeOther("/"), nil, .showed) }
            if path == "/console/sign-in" {
                let request = try await read(
                    exchange, from: client, atMost: ConsoleService.mostSignInBytes)
                let former = try session(
                    of: exchange.request, configuration: configuration, clock: figures.clock)
                let answer = try await signIn(
                    request, replacing: former?.token.id, configuration: configuration, clock: figures.clock)
                return (answer.response, answer.caller, .changed)
            }
            // Before a body is read: a stranger holds none.
            let found = try session(
                of: exchange.request, configuration: configuration, clock: figures.clock)
            guard let session = found,
                await isInUse(session, for: path, configuration: configuration, clock: figures.clock)
            else { return (.page(SignInPage.markup(for: nil), status: 401), nil, .showed) }
            caller = session.token.callerText
            exchange.recordProof(.release)
            let request = try await read(exchange, from: client, atMost: ConsoleService.mostFormBytes)
            let served = try await serve(
                request, for: session, configuration: configuration, figures: figures)
            return (served.response, caller, served.effect)
        } catch {
            return (
                .page(ConsolePage(error).markupAlone, status: error.status, fields: error.fields), caller,
                .showed
            )
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
        of request: Request, configuration: Configuration, clock: TrustedClock
    ) throws(APIProblem) -> Session? {
        guard let text = request.cookie(ConsoleService.cookie) else { return nil }
        let bytes = Array(text.utf8)
        guard
            let token = try tokens.token(
                bytes.span, of: .console, configuration: configuration, clock: clock),
            !signedOut.with({ $0.contains(token.id) })
        else { return nil }
        return Session(token: token, formToken: FormToken(ofSession: text))
    }

    private func host(
        for actor: AuditActor, having scopes: Set<APIScope> = [], showing refusals: RecentRefusals? = nil,
        in configuration: Configuration, clock: TrustedClock
    ) -> CommandHost {
        CommandHost(
            configuration: configuration, actor: actor, scopes: scopes, deployment: deployment,
            clock: clock, refusals: refusals)
    }

    /// Ends a session that was not used for long; false if this one is ended. An open page that asks for
    /// figures is no use.
    private func isInUse(
        _ session: Session, for path: String, configuration: Configuration, clock: TrustedClock
    ) async -> Bool {
        let (token, now) = (session.token, clock.estimate)
        let isIdle = token.isIdle(at: now)
        guard isIdle || (path != "/console/live" && token.isUseNews(at: now)) else { return true }
        let host = host(for: token.actor, in: configuration, clock: clock)
        _ = await onCommandThread { () -> Result<Void, APIProblem> in
            guard let deployment = try? host.open() else { return .success(()) }
            if isIdle {
                try? deployment.endConsoleSession(token.id, at: now)
            } else {
                try? deployment.useConsoleSession(token.id, at: now)
            }
            return .success(())
        }
        return !isIdle
    }

    // MARK: Reading

    private func read(
        _ exchange: any Exchange, from client: Client, atMost limit: Int
    ) async throws(APIProblem) -> ConsoleRequest {
        let request = exchange.request
        let span = request.head.span
        let path = span.extracting(request.path.range).text
        let segments =
            path == "/"
            ? []
            : try APIRouter.segments(of: path.dropFirst("/console".utf8.count)).map(ConsolePath.name)
        let query = request.query.map { span.extracting($0.range).text } ?? ""
        let pairs = try ConsoleRequest.pairs(in: Array(query.utf8))
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
            method = .submit(try await ConsoleService.form(of: exchange, atMost: limit))
        }
        return ConsoleRequest(method: method, segments: segments, query: pairs)
    }

    private static func form(
        of exchange: any Exchange, atMost limit: Int
    ) async throws(APIProblem) -> [String: String] {
        do throws(Refusal) {
            try await exchange.readWholeBody(atMost: limit)
        } catch {
            throw APIProblem(
                error.code == .tooLarge ? 413 : 400, code: "invalid",
                detail: "a form is limited to \(limit) bytes")
        }
        return try ConsoleRequest.pairs(in: exchange.request.body)
    }

    // MARK: Signing in

    /// The link's page shows a button: what fetches links in advance does not use them up.
    private func signIn(
        _ request: ConsoleRequest, replacing former: String?, configuration: Configuration,
        clock: TrustedClock
    ) async throws(APIProblem) -> (response: ServerResponse, caller: String?) {
        guard case .submit(let form) = request.method else {
            let code = request.value("code")
            let link = try link(of: code, configuration: configuration, clock: clock)
            return (.page(SignInPage.markup(for: link.map { ($0, code) })), nil)
        }
        let code = form["code"] ?? ""
        // Strangers do not make the server open the deployment.
        guard try link(of: code, configuration: configuration, clock: clock) != nil,
            let (session, text) = try await redeem(
                code, replacing: former, configuration: configuration, clock: clock)
        else { return (.page(SignInPage.markup(for: nil), status: 403), nil) }
        let left = max(0, (session.expires ?? 0) - clock.estimate)
        let cookie =
            "\(ConsoleService.cookie)=\(text); Path=/; Max-Age=\(left); Secure; HttpOnly; SameSite=Strict"
        let response = ServerResponse.seeOther(
            "/", fields: [ServerResponse.Field("Set-Cookie", value: cookie)])
        return (response, session.callerText)
    }

    private func link(
        of code: String, configuration: Configuration, clock: TrustedClock
    ) throws(APIProblem) -> APIToken? {
        let bytes = Array(code.utf8)
        return try tokens.token(bytes.span, of: .link, configuration: configuration, clock: clock)
    }

    private func redeem(
        _ code: String, replacing former: String?, configuration: Configuration, clock: TrustedClock
    ) async throws(APIProblem) -> (session: APIToken, text: String)? {
        let host = host(for: .server, in: configuration, clock: clock)
        let outcome = await onCommandThread { () -> Result<(APIToken, String)?, APIProblem> in
            let bytes = Array(code.utf8)
            do throws(OperationalError) {
                let deployment = try host.open()
                let made = try deployment.redeemConsoleLink(bytes.span, at: clock.estimate)
                // The browser forgets the session that it had.
                // The link is used up by now: whatever becomes of that, the new session counts.
                if made != nil, let former {
                    try? deployment.endConsoleSession(former, at: clock.estimate)
                }
                return .success(made)
            } catch {
                // The caller has no session, and learns no path.
                return .failure(
                    APIProblem(
                        503, code: "unavailable",
                        detail: "nobody can be signed in now; `countersign doctor` says why"))
            }
        }
        return try outcome.get().map { (session: $0.0, text: $0.1) }
    }

    // MARK: Pages

    private func serve(
        _ request: ConsoleRequest, for session: Session, configuration: Configuration,
        figures: ServerFigures
    ) async throws(APIProblem) -> Served {
        if case .submit(let form) = request.method {
            guard let sent = form["form"], session.formToken.isPresented(as: sent) else {
                throw APIProblem(
                    403, code: "form", detail: "this form is not of your session; load its page again")
            }
        }
        let visit = ConsoleVisit(
            session: session.token, formToken: session.formToken, figures: figures,
            host: host(
                for: session.token.actor, having: session.token.scopes, showing: figures.refusals,
                in: configuration, clock: figures.clock),
            environment: environment,
            answers: answers, now: figures.clock.estimate)
        if request.segments == ["live"] { return Served(LiveFigures(visit).response, effect: .showed) }
        if request.segments == ["sign-out"], case .submit = request.method {
            return Served(await signOut(visit), effect: .changed)
        }
        let isSlow = [["doctor"], ["audit", "verification"]].contains(request.segments)
        let tokens = tokens
        let outcome = await run(on: isSlow ? doctorPool : pool, for: session.token.id) {
            () -> Result<Served, APIProblem> in
            // It may have been ended while the request waited.
            guard tokens.isCurrent(visit.session, for: visit.host) else {
                return .success(
                    Served(.page(SignInPage.markup(for: nil), status: 401), effect: .showed))
            }
            do throws(APIProblem) {
                return .success(try ConsoleService.response(to: request, of: visit))
            } catch {
                let page = ServerResponse.page(
                    ConsolePage(error).markup(for: visit), status: error.status)
                return .success(Served(page, effect: .showed))
            }
        }
        return try outcome.get()
    }

    /// Ends the session and has the browser drop what it keeps, also if the session cannot be ended in the
    /// file.
    private func signOut(_ visit: ConsoleVisit) async -> ServerResponse {
        signedOut.with { ids in
            // More than there can be sessions in a day.
            if ids.count >= 10_000 { ids.removeAll() }
            ids.insert(visit.session.id)
        }
        _ = await onCommandThread { () -> Result<Void, APIProblem> in
            try? visit.signOut()
            return .success(())
        }
        let cookie = "\(ConsoleService.cookie)=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict"
        return .seeOther(
            "/",
            fields: [
                ServerResponse.Field("Set-Cookie", value: cookie),
                ServerResponse.Field("Clear-Site-Data", value: "\"cache\", \"storage\""),
            ])
    }

    /// A response, and the effect of the call.
    private struct Served: Sendable {
        let response: ServerResponse
        let effect: ConsoleEffect

        init(_ response: ServerResponse, effect: ConsoleEffect) {
            (self.response, self.effect) = (response, effect)
        }
    }

    private static func response(
        to request: ConsoleRequest, of visit: ConsoleVisit
    ) throws(APIProblem) -> Served {
        let effect: ConsoleEffect = if case .read = request.method { .showed } else { .changed }
        switch try ConsoleRoutes.answer(to: request, of: visit) {
        case .page(let page):
            return Served(.page(page.markup(for: visit), status: page.status), effect: effect)
        case .redirect(let path): return Served(.seeOther(path), effect: effect)
        case .download(let name, let body):
            let response = ServerResponse(
                status: 200, type: "application/json",
                fields: ConsoleFields.unstored + [
                    ServerResponse.Field("Content-Disposition", value: "attachment; filename=\"\(name)\"")
                ], body: body)
            return Served(response, effect: .exported)
        }
    }

    private func onCommandThread<Value: Sendable>(
        _ work: @escaping @Sendable () -> Result<Value, APIProblem>
    ) async -> Result<Value, APIProblem> {
        await run(on: pool, work: work)
    }

    private func run<Value: Sendable>(
        on pool: WorkPool, for party: String? = nil,
        work: @escaping @Sendable () -> Result<Value, APIProblem>
    ) async -> Result<Value, APIProblem> {
        do {
            return try await pool.run(within: APIProblem.mostCommandMilliseconds, for: party, work)
                ?? .failure(APIProblem.late)
        } catch {
            return .failure(
                APIProblem(503, code: "unavailable", detail: "others are being served; try again in a moment")
            )
        }
    }
}

extension APIToken {
    /// For the log.
    fileprivate var callerText: String { "\(name) (\(id))" }
}
