import CountersignSchemes
import CountersignWire

/// States that a request without a signature bears a live token of a session that was opened without a
/// signature, at the host of an app that accepts such tokens. Only ``TokenVerifier`` can make one, and it can
/// be used once.
package struct TokenProof: ~Copyable, Sendable {
    let release: AppRelease
    let session: Session
    let withheld: WithheldToken

    fileprivate init(_ release: AppRelease, of session: Session, withholding withheld: WithheldToken) {
        self.release = release
        self.session = session
        self.withheld = withheld
    }
}

/// The parts of a request's head that are not forwarded to the backend because they contain a token of the
/// authority. A class, so that callers of other schemes need no space for it.
package final class WithheldToken: Sendable {
    /// The fields that are not forwarded.
    package let fields: FieldMask
    /// The other cookies, forwarded in place of the original cookie fields; empty if there are none.
    package let cookies: [UInt8]
    /// The upload ticket of the request; nil if it bears a token.
    package let ticket: UploadTicketRecord?

    init(fields: FieldMask, cookies: [UInt8] = [], ticket: UploadTicketRecord? = nil) {
        self.fields = fields
        self.cookies = cookies
        self.ticket = ticket
    }
}

/// Scheme `token`: a token of the authority sent without a signature, by apps that never signed. It proves
/// the session and nothing else about the request. Source: docs/protocol.md, "Tokens alone"; decision 0039.
struct TokenVerifier: Sendable {
    private let keys: KeyRing
    private let sessions: any SessionSource

    init(_ keys: KeyRing, sessions: any SessionSource) {
        self.keys = keys
        self.sessions = sessions
    }

    /// The app at the request's host whose policy allows scheme `token`; nil if there is none.
    func appAcceptingTokens(for request: Request) throws(Refusal) -> HostedApp? {
        guard let app = try keys.app(at: request), app.acceptsTokens else { return nil }
        return app
    }

    /// The proof of the request's session; nil if the body has not arrived and the head gives no reason to
    /// refuse. Records its findings in `judgement`. `network` returns the client's network address; `now` is
    /// in whole Unix seconds.
    func prove(
        _ request: Request, to app: HostedApp, recordingIn judgement: Judgement, from network: () -> [UInt8],
        as effect: ReleaseCheck.Effect?, at now: Int64
    ) throws(Refusal) -> TokenProof? {
        let readsForm = request.hasFormType && app.policy.readsForms
        if readsForm, request.bodyState == .streaming {
            throw Refusal(
                .tooLarge, detail: "app \(app.name) has values in forms, and this one is too large to be held"
            )
        }
        judgement.step = .key
        let sent = try RequestToken(in: request, at: app.policy.tokenLocations)
        guard let sent else {
            if readsForm, request.bodyState == .awaited { return nil }
            throw Refusal(
                .unsigned,
                detail: "no signature of a known scheme, and no token where app \(app.name) has them")
        }
        let session = try session(bearing: sent.token, of: app)
        if session.isAlive(at: now) { judgement.tokenSession = session }
        if readsForm, request.bodyState == .awaited { return nil }
        let release = app.release(forVersion: try StatedVersion(in: request, by: app.policy), in: session)
        judgement.tokenRelease = release
        judgement.step = .policy
        try release.checkAllowed()
        if sent.isCookie, !request.isSafe { try CookieOriginCheck.check(request, judgement: judgement) }
        judgement.step = .release
        judgement.update = try ReleaseCheck().check(
            release, in: session, effect: effect ?? (request.isSafe ? .reads : .changes), from: network,
            at: now)
        judgement.step = .session
        try SessionCheck.check(session, of: release, at: now)
        try SubjectCheck(session).check(app.policy.userLocations, in: request)
        // All checks run again once the body has arrived, because their results may change until then.
        guard request.bodyState != .awaited else { return nil }
        return TokenProof(release, of: session, withholding: try sent.withheld(from: request))
    }

    /// The session must have been opened without a signature. Otherwise an eavesdropper could use the token
    /// of a signing client without the signature.
    private func session(
        bearing token: [UInt8], of app: HostedApp
    ) throws(Refusal) -> Session {
        let session: Session?
        do {
            session = try sessions.session(bearing: token.span)
        } catch {
            throw Refusal(error, in: "sessions")
        }
        guard let session, session.kind == .bearer, session.app == app.name, session.loginKind == .unsigned
        else {
            throw Refusal(
                .sessionEnded, detail: "no session that was opened without a signature has this token")
        }
        return session
    }
}

extension Session {
    func isAlive(at now: Int64) -> Bool { end == nil && idleEnd > now && expires > now }
}

extension Policy {
    /// Whether the policy reads any value from a form.
    fileprivate var readsForms: Bool {
        [tokenLocations, userLocations, releaseLocations, platformLocations].contains {
            $0.contains { $0.kind == .form }
        }
    }
}

/// A token and its place in the request.
private struct RequestToken {
    let token: [UInt8]
    private let place: ValueLocation

    /// Nil if there is none. Refuses two tokens, even equal ones.
    init?(in request: Request, at places: [ValueLocation]) throws(Refusal) {
        let values = RequestValues(request)
        var found: (token: [UInt8], place: ValueLocation)?
        for place in places {
            guard let token = try values.value(at: place) else { continue }
            guard found == nil else {
                throw Refusal(.malformed, detail: "two tokens, one at \(place.kind.rawValue); expected one")
            }
            found = (token, place)
        }
        guard let found else { return nil }
        (token, place) = found
    }

    /// Whether a browser adds the token by itself.
    var isCookie: Bool { place.kind == .cookie }

    /// A token in a form or in the query is forwarded as received. Refuses another token of the authority in
    /// a field where none is read, because it would be forwarded.
    func withheld(from request: Request) throws(Refusal) -> WithheldToken {
        var (held, cookies) = (FieldMask(), [UInt8]())
        switch place {
        case .bearer:
            if let field = try RequestValues(request).bearer()?.field { held = FieldMask(field) }
        case .header(let name):
            if let field = try RequestValues(request).field(name)?.index {
                held = FieldMask(field)
            }
        case .cookie(let name):
            let sent = try Cookies(in: request)
            // Cookie fields that `Connection` names are hop-by-hop, so their cookies are not forwarded in
            // another field either.
            let isEnding = sent.fields.intersects(request.hopByHopFields)
            (held, cookies) = (sent.fields, isEnding ? [] : sent.without(name))
        case .form, .query, .userAgent: break
        }
        for index in request.fields.indices where index < FieldMask.limit {
            guard !held.contains(index),
                RequestToken.isSearched(request.fields[index], in: request)
            else { continue }
            try RequestToken.refuseMisplacedToken(
                request.head.span.extracting(request.fields[index].value.range))
        }
        try RequestToken.refuseMisplacedToken(cookies.span)
        return WithheldToken(fields: held, cookies: cookies)
    }

    private static func isSearched(_ field: Request.Field, in request: Request) -> Bool {
        field.known == .authorization || field.known == .other && request.matches(field.name, text: "cookie")
    }

    private static func refuseMisplacedToken(_ value: Span<UInt8>) throws(Refusal) {
        guard BearerTokenScanner.find(in: value) == nil else {
            throw Refusal(.malformed, detail: "a field holds a token of ours where none is read")
        }
    }
}

/// A browser adds cookies to requests that pages of other sites make; `Origin` names the page's origin.
/// Source: RFC 6454 §7.
private enum CookieOriginCheck {
    /// Refuses as `forbidden` unless the request comes from a page of the host that it is sent to.
    static func check(_ request: Request, judgement: Judgement) throws(Refusal) {
        let transport = judgement.isProxied ? request.proxiedTransport : request.transport
        let scheme: StaticString = transport == .tls ? "https://" : "http://"
        guard let slice = request.value(of: "origin") else {
            throw Refusal(
                .forbidden,
                detail: "a token in a cookie, and no Origin or several: this request changes something")
        }
        let origin = request.head.span.extracting(slice.range)
        let length = scheme.utf8CodeUnitCount
        guard origin.count > length, origin.extracting(0..<length).matches(scheme) else {
            throw CookieOriginCheck.another
        }
        let port = transport.defaultPortSuffix
        let named = URIAuthority.normalised(origin.extracting(length...), without: port)
        let called = URIAuthority.normalised(
            request.head.span.extracting(request.authority.range), without: port)
        guard named.count == called.count, named.count > 0 else { throw CookieOriginCheck.another }
        for index in 0..<named.count where ASCII.lowercased(named[index]) != ASCII.lowercased(called[index]) {
            throw CookieOriginCheck.another
        }
    }

    private static let another = Refusal(
        .forbidden,
        detail: "a token in a cookie, and an Origin that is not the host that the request is sent to")
}
