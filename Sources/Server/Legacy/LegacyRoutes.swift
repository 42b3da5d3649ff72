import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// The routes at which legacy clients sign in, outside the prefix. They exist only if an app's policy sets
/// them; otherwise these paths belong to the backend like any other. Source: docs/protocol.md, "The login
/// ladder".
final class LegacyRoutes: Sendable {
    let services: AccountServices

    init(services: AccountServices) { self.services = services }

    /// The route that is called, its app, and whether the call is signed.
    struct Match: Sendable {
        let call: LegacyCall
        let app: LegacyApp
        /// The gate judges a signed call. An unsigned call is judged only by its parameters.
        let isSigned: Bool
    }

    /// A login has few parameters, and comes from unauthenticated callers.
    static let mostBodyBytes = 64 << 10

    /// Whether the request may call one of these routes: then its body, if it is small, is read before
    /// anything is judged. The path excludes most requests, and no path matches if no app has these routes.
    /// The caller owns `screen`, which stays valid until an app changes.
    func mayBeCalled(by request: Request, keeping screen: inout LegacyPathFilter?) throws(Refusal) -> Bool {
        if screen?.generation != services.legacyLogins.apps.generation {
            do {
                screen = try services.legacyLogins.apps.pathFilter
            } catch {
                throw LegacyRoutes.unavailable(error)
            }
        }
        return screen?.mayMatch(request.head.span.extracting(request.path.range)) ?? false
    }

    /// The route that the request calls, given the judgement of its caller. Nil if the call is for the
    /// backend: another path, an app without these routes, or no app at all. Refuses a call that matches none
    /// of these routes exactly and could reach the backend's own login, where guesses are neither judged nor
    /// counted.
    func find(_ request: Request, judgement: Judgement) throws(Refusal) -> Match? {
        let isSigned = judgement.isSigned
        // The app that the call claims; the gate verifies the signature later.
        let app = try app(of: request, release: isSigned ? judgement.release : nil, isSigned: isSigned)
        guard let app, let reading = app.endpoints.match(for: request),
            !reading.isOfTokens || app.policy.legacySession == .authority
        else { return nil }
        guard case .called(let call) = reading else {
            throw Refusal(
                .malformed,
                detail: "where old clients sign in: expected the path as documented, and its method")
        }
        guard request.isBodyWhole else {
            throw Refusal(.tooLarge, detail: "where old clients sign in: the body is too large")
        }
        return Match(call: call, app: app, isSigned: isSigned)
    }

    private func app(
        of request: Request, release: AppRelease?, isSigned: Bool
    ) throws(Refusal) -> LegacyApp? {
        do {
            guard isSigned else {
                return try services.legacyLogins.apps.app(
                    at: request.head.span.extracting(request.authority.range))
            }
            guard let release else { return nil }
            return try services.legacyLogins.apps.app(named: release.app)
        } catch {
            throw LegacyRoutes.unavailable(error)
        }
    }

    /// The release that an unsigned call claims, if its app accepts tokens alone at this host; nil otherwise.
    func release(of request: Request, to app: LegacyApp) throws(Refusal) -> AppRelease? {
        let hosted: HostedApp?
        do {
            hosted = try services.keys.app(at: request.head.span.extracting(request.authority.range))
        } catch {
            throw Refusal(error, in: "keys")
        }
        // If another rule than the host found the app, no call could use its token.
        guard let hosted, hosted.name == app.name.description else { return nil }
        return try hosted.releaseForLogin(by: request)
    }

    private static func unavailable(_ fault: OperationalError) -> Refusal {
        Refusal(fault, in: "legacy login")
    }

    /// `call.caller` is nil if the call is not signed.
    func answer(_ found: Match, to call: RouteCall) async throws(Refusal) -> LegacyAnswer {
        switch found.call {
        case .login(let endpoints): try await logIn(to: found.app, atAnyOf: endpoints, for: call)
        case .token: try await renew(in: found.app, for: call)
        case .logout: try await logOut(of: found.app, for: call)
        case .signUp(let endpoint): try await signUp(to: found.app, at: endpoint, for: call)
        case .password(let endpoints): try await changePassword(in: found.app, atAnyOf: endpoints, for: call)
        }
    }
}

extension LegacyEndpoints.Match {
    /// Whether the call is only about tokens; where the policy says so, those are the backend's own.
    fileprivate var isOfTokens: Bool {
        switch self {
        case .called(.token), .called(.logout), .ambiguous(.token), .ambiguous(.logout): true
        default: false
        }
    }
}

extension LegacyCall {
    /// What the metrics count of it.
    fileprivate var operation: AuthorityOperation? {
        switch self {
        case .login: .login
        case .token: .refresh
        case .logout, .signUp, .password: nil
        }
    }

    /// Whether an unsigned call that was not refused has proved a right password or login token. A call that
    /// signs out gets the same response for every token.
    fileprivate var provesCaller: Bool {
        switch self {
        case .login, .token, .signUp, .password: true
        case .logout: false
        }
    }

    /// What a release in its read-only stage may still do, as on the authority's own routes: begin a session,
    /// keep it alive, or end it.
    var effect: ReleaseCheck.Effect {
        switch self {
        case .login, .token, .logout: .reads
        case .signUp, .password: .changes
        }
    }
}

/// The response of a legacy route, and its decision. Old clients read some refusals from a response of status
/// 200 with the user number 0, so the response alone does not show the decision.
struct LegacyAnswer: Sendable {
    let response: ServerResponse
    /// Why the call did not do what it asks for; nil if it did.
    let refusal: Refusal?

    /// JSON with `Cache-Control: no-store` and without a line break: legacy clients compare texts.
    static func done(_ members: [(name: String, value: JSONValue)]) -> LegacyAnswer {
        LegacyAnswer(members, refusal: nil)
    }

    /// `{"userId":N}`, under the app's name for the parameter.
    static func user(_ id: Int64, of app: LegacyApp) -> LegacyAnswer {
        done([(app.policy.parameter(.user), .integer(id))])
    }

    /// `{"userId":0}`, whatever the reason.
    static func noUser(_ refusal: Refusal, of app: LegacyApp) -> LegacyAnswer {
        LegacyAnswer([(app.policy.parameter(.user), .integer(0))], refusal: refusal)
    }

    private init(_ members: [(name: String, value: JSONValue)], refusal: Refusal?) {
        response = ServerResponse(
            status: 200, type: "application/json",
            fields: [ServerResponse.Field("Cache-Control", value: "no-store")],
            body: JSONValue.object(members).bytes)
        self.refusal = refusal
    }
}

extension Gateway {
    /// Calls a legacy login route. An unsigned caller receives refusals in the dialect of a signed legacy
    /// caller: these clients read no problem documents.
    @inline(never)
    func serveLegacy(
        _ found: LegacyRoutes.Match, routes legacy: LegacyRoutes, exchange: any Exchange,
        request: inout Request,
        judgement: Judgement, event: RequestEvent
    ) async throws(Refusal) {
        var caller: Caller?
        var unsigned: AppRelease?
        if !found.isSigned { event.unsignedParty = .app(found.app.name.description) }
        do {
            if found.isSigned {
                let effect = found.call.effect
                let judged = try await admit(
                    exchange, request: &request, judgement: judgement, for: .login, as: effect)
                event.caller = judged
                if let app = judged.release.traffic { try traffic.admit(client(of: exchange), by: app.rules) }
                caller = judged
            } else {
                try gate.checkHost(of: request)
                try traffic.admit(client(of: exchange), by: found.app.policy.traffic)
                unsigned = try legacy.release(of: request, to: found.app)
                if let unsigned {
                    event.unsignedParty = .release(unsigned)
                    try unsigned.checkServed(
                        as: found.call.effect, from: { network(of: exchange) }, at: clock.now)
                }
            }
            // Not before: the metrics count no call that the gate has not admitted.
            event.operation = found.call.operation
            if found.call.operation != nil { try checkClock() }
            let call = RouteCall(
                request: request, caller: caller, unsigned: unsigned,
                address: ClientAddress(client(of: exchange)),
                event: event.id, parameter: "", now: clock.estimate)
            let answer = try await legacy.answer(found, to: call)
            if let refusal = answer.refusal {
                event.refusal = refusal
                count(refusal, of: event, named: nil, on: exchange)
            } else {
                event.isSignedIn = found.call.provesCaller
            }
            let plain = answer.response.addingUpdateNotice(for: caller)
            await exchange.respond(signed(plain, to: exchange, judgement: judgement))
        } catch {
            let refusal = clock.confirmed(error)
            guard !found.isSigned else { throw refusal }
            event.refusal = refusal
            count(refusal, of: event, named: nil, on: exchange)
            let text = text(
                for: refusal, answering: request, of: found.app.name.description, release: unsigned?.id)
            await exchange.respond(RefusalResponse.unsignedLegacy(refusal, text: text, event: event.id))
        }
    }
}
