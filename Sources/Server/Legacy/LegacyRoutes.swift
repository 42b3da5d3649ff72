import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// The routes that old clients sign in at, outside the prefix. They are there where an app's policy says so; else these paths
/// are the backend's like any other. Source: docs/protocol.md, "The login ladder".
final class LegacyRoutes: Sendable {
    let services: AccountServices

    init(services: AccountServices) { self.services = services }

    /// What is called, and whose call it is.
    struct Found: Sendable {
        let call: LegacyCall
        let app: LegacyApp
        /// To be judged by the gate. One that is not signed is judged by what it carries alone.
        let isSigned: Bool
    }

    /// A login is a few parameters, and comes from anybody.
    static let mostBodyBytes = 64 << 10

    /// Whether the request may be for one of these: then its body, if it is small, is read before anything is
    /// judged. Most are told by their path, and where no app has these routes, none is looked at. `screen`
    /// is the caller's own, and kept for as long as no app changes.
    func mayBeCalled(by request: Request, keeping screen: inout LegacyScreen?) throws(Refusal) -> Bool {
        if screen?.generation != services.ladder.apps.generation {
            do throws(Fault) {
                screen = try services.ladder.apps.screen
            } catch {
                throw LegacyRoutes.unavailable(error)
            }
        }
        return screen?.mayMean(request.head.span.extracting(request.path.range)) ?? false
    }

    /// The route that the request calls, given the judgement of its caller. Nil where the call is the
    /// backend's: another path, an app without these routes, or no app at all. Refuses a call that is not one
    /// of ours and could reach the backend's own login, where guesses are neither judged nor counted.
    func find(_ request: Request, _ judgement: Judgement) throws(Refusal) -> Found? {
        let isSigned = judgement.isSigned
        // Says whose call it would be; that the signature holds is the gate's to find, later.
        let app = try app(of: request, isSigned ? judgement.release : nil, isSigned: isSigned)
        guard let app, let reading = app.doors.reading(of: request),
            !reading.isOfTokens || app.policy.legacySession == .authority
        else { return nil }
        guard case .called(let call) = reading else {
            throw Refusal(
                .malformed, "where old clients sign in: expected the path as documented, and its method")
        }
        guard request.isBodyWhole else {
            throw Refusal(.tooLarge, "where old clients sign in: the body is too large")
        }
        return Found(call: call, app: app, isSigned: isSigned)
    }

    private func app(
        of request: Request, _ release: ReleaseKey?, isSigned: Bool
    ) throws(Refusal) -> LegacyApp? {
        do throws(Fault) {
            guard isSigned else {
                return try services.ladder.apps.app(at: request.head.span.extracting(request.authority.range))
            }
            guard let release else { return nil }
            return try services.ladder.apps.app(named: release.app)
        } catch {
            throw LegacyRoutes.unavailable(error)
        }
    }

    /// The release that an unsigned call comes from by what it says, where its app takes tokens alone at this
    /// host; nil for all others.
    func release(of request: Request, to app: LegacyApp) throws(Refusal) -> ReleaseKey? {
        let hosted: HostedApp?
        do throws(Fault) {
            hosted = try services.keys.app(at: request.head.span.extracting(request.authority.range))
        } catch {
            throw Refusal(.unavailable, "keys: \(error.message)", retryAfter: 5)
        }
        // Where another rule than the host found the app, no call could bear its token.
        guard let hosted, hosted.name == app.name.description else { return nil }
        return try hosted.release(signingInBy: request)
    }

    private static func unavailable(_ fault: Fault) -> Refusal {
        Refusal(.unavailable, "legacy login: \(fault.message)", retryAfter: 5)
    }

    /// `call.caller` is nil where the call is not signed.
    func answer(_ found: Found, _ call: RouteCall) async throws(Refusal) -> Answer {
        switch found.call {
        case .login(let doors): try await logIn(to: found.app, atAnyOf: doors, for: call)
        case .token: try await renew(in: found.app, for: call)
        case .logout: try await logOut(of: found.app, for: call)
        case .signUp(let door): try await signUp(to: found.app, at: door, for: call)
        case .password(let doors): try await changePassword(in: found.app, atAnyOf: doors, for: call)
        }
    }
}

extension LegacyDoors.Reading {
    /// Whether it is about tokens alone, which are the backend's own where the policy says so.
    fileprivate var isOfTokens: Bool {
        switch self {
        case .called(.token), .called(.logout), .meant(.token), .meant(.logout): true
        default: false
        }
    }
}

extension LegacyCall {
    /// What a version that may only read is still let do, as on our own routes: what begins a session, keeps
    /// it alive or ends it.
    var effect: Releases.Effect {
        switch self {
        case .login, .token, .logout: .reads
        case .signUp, .password: .changes
        }
    }
}

extension Answer {
    /// JSON that nobody is to keep, without a line break: old clients compare texts.
    static func legacy(_ members: [(name: String, value: JSONValue)]) -> Answer {
        Answer(
            status: 200, type: "application/json", fields: [Field("Cache-Control", "no-store")],
            body: Array(JSONValue.object(members).text.utf8))
    }

    /// `{"userId":N}`, under the name that the app has for it; N is 0 for whoever is not let in, whatever the
    /// reason.
    static func legacyUser(_ id: Int64, of app: LegacyApp) -> Answer {
        legacy([(app.policy.parameter(.user), .integer(id))])
    }
}
