import CountersignSchemes
import CountersignWire

/// Says that a request without a signature bears a live token of a session that was opened without one, at
/// the host of an app that takes those. Only ``BareTokens`` can make one, and it can be used once.
package struct TokenProof: ~Copyable, Sendable {
    let release: ReleaseKey
    let session: Session
    let withheld: WithheldToken

    fileprivate init(_ release: ReleaseKey, of session: Session, withholding withheld: WithheldToken) {
        self.release = release
        self.session = session
        self.withheld = withheld
    }
}

/// What of a request's head must not go on to the backend, because a token of ours stands in it. A class, so
/// that callers of other schemes carry no room for it.
package final class WithheldToken: Sendable {
    /// The fields that are left out.
    package let fields: FieldMask
    /// The cookies beside the token's, in the place of the fields that held them; empty where there are none.
    package let cookies: [UInt8]
    /// The upload ticket that the request is sent with; nil where it bears a token.
    package let ticket: UploadTicket?

    init(fields: FieldMask, cookies: [UInt8] = [], ticket: UploadTicket? = nil) {
        self.fields = fields
        self.cookies = cookies
        self.ticket = ticket
    }
}

/// Scheme `token`: a token of ours that is sent alone, by apps that never signed. It proves whose session it
/// is, and nothing else of the request. Source: docs/protocol.md, "Tokens alone"; decision 0039.
struct BareTokens: Sendable {
    private let keys: KeyRing
    private let sessions: any SessionSource

    init(_ keys: KeyRing, sessions: any SessionSource) {
        self.keys = keys
        self.sessions = sessions
    }

    /// The app at the request's host whose policy allows scheme `token`; nil if there is none.
    func app(takingTokenOf request: Request) throws(Refusal) -> HostedApp? {
        guard let app = try keys.app(at: request), app.takesTokens else { return nil }
        return app
    }

    /// Whose request it is; nil while its body is awaited, where the head gives no reason to refuse it. What
    /// is found out is noted in `judgement`. `network` is where the client calls from; `now` is in whole Unix
    /// seconds.
    nonisolated(nonsending) func prove(
        _ request: Request, to app: HostedApp, _ judgement: Judgement, from network: () -> [UInt8],
        as effect: Releases.Effect?, at now: Int64
    ) async throws(Refusal) -> TokenProof? {
        let readsForm = request.hasFormType && app.policy.readsForms
        if readsForm, request.bodyState == .streaming {
            throw Refusal(
                .tooLarge, "app \(app.name) has values in forms, and this one is too large to be held")
        }
        judgement.step = .key
        let sent = try SentToken(in: request, at: app.policy.tokenPlaces)
        guard let sent else {
            if readsForm, request.bodyState == .awaited { return nil }
            throw Refusal(
                .unsigned, "no signature of a known scheme, and no token where app \(app.name) has them")
        }
        let session = try await session(bearing: sent.token, of: app)
        if session.isAlive(at: now) { judgement.bearing = session }
        if readsForm, request.bodyState == .awaited { return nil }
        let release = app.release(saying: try StatedVersion(in: request, by: app.policy), in: session)
        judgement.tokenRelease = release
        judgement.step = .policy
        try release.checkAllowed()
        if sent.isCookie, !request.isSafe { try CookieOrigin.check(request, judgement) }
        judgement.step = .release
        judgement.update = try Releases().check(
            release, in: session, effect ?? (request.isSafe ? .reads : .changes), from: network, at: now)
        judgement.step = .session
        try Sessions.check(session, of: release, at: now)
        try StatedSubject(session).check(app.policy.userPlaces, in: request)
        // What may change until the body is there is asked again, all of it.
        guard request.bodyState != .awaited else { return nil }
        return TokenProof(release, of: session, withholding: try sent.withheld(from: request))
    }

    /// Only of a session that was itself opened without a signature: else whoever reads a token on its way
    /// could leave out the signature that belongs beside it.
    nonisolated(nonsending) private func session(
        bearing token: [UInt8], of app: HostedApp
    ) async throws(Refusal) -> Session {
        let session: Session?
        do throws(Fault) {
            session = try await sessions.session(bearing: token.span)
        } catch {
            throw Refusal(.unavailable, "sessions: \(error.message)", retryAfter: 5)
        }
        guard let session, session.kind == .bearer, session.app == app.name, session.opening == .unsigned
        else {
            throw Refusal(.sessionEnded, "no session that was opened without a signature has this token")
        }
        return session
    }
}

extension Session {
    func isAlive(at now: Int64) -> Bool { end == nil && idleEnd > now && expires > now }
}

extension Policy {
    /// Whether something about a request is read in its form.
    fileprivate var readsForms: Bool {
        [tokenPlaces, userPlaces, releasePlaces, platformPlaces].contains { $0.contains { $0.kind == .form } }
    }
}

/// A token, and where in the request it stands.
private struct SentToken {
    let token: [UInt8]
    private let place: RequestPlace

    /// Nil where there is none. Two are refused, even where they are the same: the backend might read another
    /// one than the gate.
    init?(in request: Request, at places: [RequestPlace]) throws(Refusal) {
        let values = SentValues(request)
        var found: (token: [UInt8], place: RequestPlace)?
        for place in places {
            guard let token = try values.value(at: place) else { continue }
            guard found == nil else {
                throw Refusal(.malformed, "two tokens, one at \(place.kind.rawValue); expected one")
            }
            found = (token, place)
        }
        guard let found else { return nil }
        (token, place) = found
    }

    /// Whether a browser adds it by itself.
    var isCookie: Bool { place.kind == .cookie }

    /// What stands in a form or in the query goes on as it came. A second copy of the token, in a field where
    /// none is read, is refused: it would go on.
    func withheld(from request: Request) throws(Refusal) -> WithheldToken {
        var (held, cookies) = (FieldMask(), [UInt8]())
        switch place {
        case .bearer:
            if let field = try SentValues(request).bearer()?.field { held = FieldMask(field) }
        case .header(let name):
            if let field = try SentValues(request).field(name)?.index {
                held = FieldMask(field)
            }
        case .cookie(let name):
            let sent = try Cookies(in: request)
            // What `Connection` ends here does not go on in another line either.
            let isEnding = sent.fields.intersects(request.endingHere)
            (held, cookies) = (sent.fields, isEnding ? [] : sent.without(name))
        case .form, .query, .userAgent: break
        }
        for index in request.fields.indices where index < FieldMask.limit {
            guard !held.contains(index),
                SentToken.isSearched(request.fields[index], request)
            else { continue }
            try SentToken.refuseStray(request.head.span.extracting(request.fields[index].value.range))
        }
        try SentToken.refuseStray(cookies.span)
        return WithheldToken(fields: held, cookies: cookies)
    }

    private static func isSearched(_ field: Request.Field, _ request: Request) -> Bool {
        field.known == .authorization || field.known == .other && request.matches(field.name, "cookie")
    }

    private static func refuseStray(_ value: Span<UInt8>) throws(Refusal) {
        guard StrayToken.find(in: value) == nil else {
            throw Refusal(.malformed, "a field holds a token of ours where none is read")
        }
    }
}

/// A browser adds cookies to what other sites ask of it; the page that asks is named in `Origin`. Source: RFC
/// 6454 §7.
private enum CookieOrigin {
    /// Refused as `forbidden` unless the request comes from a page of the host that it is sent to.
    static func check(_ request: Request, _ judgement: Judgement) throws(Refusal) {
        let transport = judgement.isProxied ? request.proxiedTransport : request.transport
        let scheme: StaticString = transport == .tls ? "https://" : "http://"
        guard let slice = request.value(of: "origin") else {
            throw Refusal(
                .forbidden, "a token in a cookie, and no Origin or several: this request changes something")
        }
        let origin = request.head.span.extracting(slice.range)
        let length = scheme.utf8CodeUnitCount
        guard origin.count > length, origin.extracting(0..<length).matches(scheme) else {
            throw CookieOrigin.another
        }
        let port = transport.defaultPortSuffix
        let named = Authority.normalised(origin.extracting(length...), without: port)
        let called = Authority.normalised(
            request.head.span.extracting(request.authority.range), without: port)
        guard named.count == called.count, named.count > 0 else { throw CookieOrigin.another }
        for index in 0..<named.count where ASCII.lowercased(named[index]) != ASCII.lowercased(called[index]) {
            throw CookieOrigin.another
        }
    }

    private static let another = Refusal(
        .forbidden, "a token in a cookie, and an Origin that is not the host that the request is sent to")
}
