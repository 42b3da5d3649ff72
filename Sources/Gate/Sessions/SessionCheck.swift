import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The destination of a request, which decides whether it needs a session.
package enum RequestDestination: Sendable {
    case backend
    /// A route of the authority, which itself decides which callers it admits.
    case ownRoute
    /// The authority's route that ends the caller's session: every key that is still kept ends it, because a
    /// device that was offline reports its log-out late and has kept nothing to renew the token with.
    case logOut
    /// A route at which legacy clients sign in or renew their tokens; the gate does not read a token that
    /// they still send.
    case login
}

/// Checks that the caller's session is live, and that a caller without a session does not need one.
package struct SessionCheck: Sendable {
    private let source: any SessionSource

    package init(_ source: any SessionSource) { self.source = source }

    /// Refuses a caller whose session has ended, or a caller without a session on a route that needs one.
    /// `route` is nil for the authority's routes; `now` is in whole Unix seconds.
    package func check(
        _ caller: Caller, on route: RouteRules.Decision?, to destination: RequestDestination = .backend,
        at now: Int64
    ) throws(Refusal) {
        try check(caller.session, of: caller.release, on: route, to: destination, at: now)
    }

    /// The same for the caller's session, nil for none, and release.
    func check(
        _ session: Session?, of release: AppRelease, on route: RouteRules.Decision?,
        to destination: RequestDestination, at now: Int64
    ) throws(Refusal) {
        guard let session else {
            if let route, route.level >= .session { throw release.refusalForMissingSession(on: route) }
            return
        }
        try SessionCheck.check(session, of: release, to: destination, at: now)
        source.noteUse(of: session, at: now)
    }

    /// Refuses a session that has ended, whose token has expired, or whose key is for another release;
    /// `release` is the caller's. A log-out needs neither a live token nor the same release, under whichever
    /// key or token is still known: a device that was offline, or whose app was updated, cannot renew them
    /// first, and the worst that an old key can do here is to end its own session.
    static func check(
        _ session: Session, of release: AppRelease, to destination: RequestDestination = .backend,
        at now: Int64
    ) throws(Refusal) {
        if let end = session.end { throw Refusal(end, of: session.id) }
        if session.idleEnd <= now {
            throw Refusal(ofExpired: session.id, at: session.idleEnd)
        }
        guard destination != .logOut else { return }
        if session.expires <= now {
            try BearerTokenResolver.checkRenewal(session, of: release)
            let until = CivilTime.rfc3339Text(session.expires)
            throw Refusal(
                .tokenExpired, detail: "session \(session.id), epoch \(session.epoch): good until \(until)")
        }
        try checkBinding(of: session, to: release)
    }

    /// Refuses a request that names another release than the one that its key is for, as `token-expired`: an
    /// updated app refreshes, which its new release signs, and goes on.
    private static func checkBinding(of session: Session, to release: AppRelease) throws(Refusal) {
        guard case .only(let bound) = session.binding, bound != release.id else { return }
        throw Refusal(
            .tokenExpired,
            detail: "session \(session.id), epoch \(session.epoch): its key is for release \(bound), and "
                + "the request names \(release.id); a refresh by that release makes it another key")
    }
}

extension AppRelease {
    /// Returns the refusal's code if only the route's level causes it and the route or the app observes;
    /// otherwise throws the refusal. The caller's proof is valid, so the request keeps its identity.
    func observing(
        _ refusal: Refusal, on route: RouteRules.Decision?, at now: Int64
    ) throws(Refusal) -> Refusal.Code {
        guard let route, refusal.code.isOfLevel,
            (route.enforcement ?? policy.enforcement).isObserving(at: now)
        else { throw refusal }
        return refusal.code
    }

    func refusalForMissingSession(on route: RouteRules.Decision) -> Refusal {
        let rule = policy.routes.rules[route.index]
        return Refusal(
            .sessionRequired,
            detail: "this route needs a session: \(rule.prefixText) asks for `\(route.level.rawValue)`; "
                + "`\(rule.command(setting: .signed, of: app))` lets a release in by itself")
    }

    /// What a route of level `device` requires and how to lower that, for the detail of a refusal.
    func deviceRequirement(of route: RouteRules.Decision) -> String {
        let rule = policy.routes.rules[route.index]
        return "\(rule.prefixText) asks for `\(route.level.rawValue)`; "
            + "`\(rule.command(setting: .session, of: app))` does without the device's signature"
    }
}

extension Refusal.Code {
    /// Whether the route's level causes the refusal: the session or the device's signature is missing, or the
    /// session has no device key.
    package var isOfLevel: Bool {
        switch self {
        case .sessionRequired, .deviceUnsigned, .forbidden: true
        default: false
        }
    }
}

extension Refusal {
    /// The refusal for an ended session. Only a caller whose signature was verified receives it: no other
    /// caller learns the reason or that the session existed.
    package init(_ end: SessionTermination, of session: SessionID) {
        let at = CivilTime.rfc3339Text(end.at)
        self.init(.sessionEnded, detail: "session \(session): \(end.reason.rawValue) at \(at)")
        endedSession = EndedSession(reason: end.reason.rawValue, at: end.at, by: end.by)
    }

    /// The refusal for a session that was not renewed in time. Whether its end has come depends on the clock.
    package init(ofExpired session: SessionID, at end: Int64) {
        self.init(SessionTermination(.expired, at: end), of: session)
        decidingTime = end
    }
}

/// Verifies the device's own signature on routes of level ``RouteRule/Level/device``. A session's request key
/// is in the app's memory; the device's key is not. Source: docs/protocol.md, "Device-signed routes".
struct DeviceSignatureVerifier: Sendable {
    private let source: any SessionSource
    private let scheme = MessageSignatures()
    private let failures: PublicKeyFailureLimiter

    init(sessions source: any SessionSource, failures: PublicKeyFailureLimiter) {
        self.source = source
        self.failures = failures
    }

    /// `label` is that of the signature that admitted the caller; `network` returns the client's network
    /// address. `known` is the device's key, if it was looked up before.
    func check(
        _ session: Session?, of release: AppRelease, sending request: Request,
        on route: RouteRules.Decision, signed label: ByteRange,
        from network: () -> [UInt8], at now: Int64, key known: P256Point?, lease work: WorkspaceLease
    ) throws(Refusal) {
        guard let session else { throw release.refusalForMissingSession(on: route) }
        guard session.kind == .device else {
            throw Refusal(
                .forbidden,
                detail: "session \(session.id) has no device key to sign with, and "
                    + release.deviceRequirement(of: route))
        }
        guard let claim = try scheme.deviceClaim(in: request, over: label, workspace: &work.workspace) else {
            throw Refusal(
                .deviceUnsigned,
                detail: "no signature with tag=\"\(MessageSignatures.deviceTag)\": "
                    + release.deviceRequirement(of: route))
        }
        guard claim.holder == .session(SessionToken(id: session.id, epoch: session.epoch)) else {
            throw Refusal(
                .badSignature,
                detail: "the device's signature: keyid \(claim.keyID) is not the session's token")
        }
        try scheme.writeStringToSign(for: claim, of: request, into: &work.workspace)
        let place = PublicKeyFailureLimiter.FailureKey(claim.keyID, from: network())
        if let place { try failures.check(place, at: now) }
        let key = if let known { known } else { try key(of: session) }
        guard claim.compare(with: key, workspace: work.workspace) == .equal else {
            if let place { failures.recordFailure(of: place, at: now) }
            throw Refusal(.badSignature, detail: "the device's signature differs")
        }
    }

    func key(of session: Session) throws(Refusal) -> P256Point {
        do {
            if let key = try source.deviceKey(of: session.id) { return key }
        } catch {
            throw Refusal(error, in: "sessions")
        }
        throw Refusal(.unavailable, detail: "session \(session.id): its device's key is gone", retryAfter: 5)
    }
}
