import CountersignSchemes
import CountersignWire

/// The reason why the gateway forwards a refused request to the backend without an identity.
package struct PassThrough: Sendable {
    package enum Cause: Sendable, Equatable {
        /// Its route is open.
        case open
        /// The gateway would refuse it for this code, and forwards it because the route or app only observes.
        case observed(Refusal.Code)
    }

    package let cause: Cause
    /// The app whose policy or route rules allow it.
    package let app: String
    /// The release that the request names, proven or not; nil if it names none.
    package let release: AppRelease?
    /// Nil if the app has no traffic rules.
    package let traffic: AppTraffic?
}

extension Gate {
    /// The reason to forward a refused request to the backend; nil if the refusal stands. The refusal stands
    /// if it is not about the request's proof (framing, limits, hosts, revocation, an outage) or if the
    /// request belongs to no app. Throws the refusal of an unsigned request with what its route requires.
    package func passThrough(
        for request: Request, judgement: Judgement, after refusal: Refusal
    ) throws(Refusal) -> PassThrough? {
        // A client that sends a ticket relies on it, so its refusal stands even where the app only observes.
        guard !request.names.contains(.countersignTicket) else { return nil }
        guard refusal.code.isOfProof, let owner = try owner(of: request, judgement: judgement) else {
            return nil
        }
        let route = try owner.policy.routes.decision(for: request)
        func passage(_ cause: PassThrough.Cause) -> PassThrough {
            PassThrough(
                cause: cause, app: owner.app, release: judgement.release,
                traffic: AppTraffic(app: owner.app, policy: owner.policy))
        }
        if route.level == .open, refusal.code == .unsigned { return passage(.open) }
        guard (route.enforcement ?? owner.policy.enforcement).isObserving(at: clock.now) else {
            guard refusal.code == .unsigned else { return nil }
            throw refusal.naming(owner.policy.routes.rules[route.index], of: owner.app, under: owner.policy)
        }
        return passage(.observed(refusal.code))
    }

    /// The app whose release the request names, if that app has no legacy host or the request was sent to it;
    /// without a release, the app whose legacy host the request was sent to.
    private func owner(
        of request: Request, judgement: Judgement
    ) throws(Refusal) -> (app: String, policy: Policy)? {
        let hosted = try keys.app(at: request)
        guard let release = judgement.release else { return hosted.map { ($0.name, $0.policy) } }
        guard release.policy.legacyHost == nil || hosted?.name == release.app else { return nil }
        return (release.app, release.policy)
    }
}

extension Refusal {
    /// The same refusal with the level that the request lacks and the command that changes it. Only the log
    /// and developers (`debug`) read these: the caller is told the detail of `unsigned`, has proved nothing,
    /// and need not learn the app's name.
    fileprivate func naming(_ rule: RouteRule, of app: String, under policy: Policy) -> Refusal {
        let need =
            "\(rule.prefixText) asks for `\(rule.level.rawValue)`; "
            + "`\(rule.command(setting: .open, of: app))` lets anybody call it"
        var refusal = self
        switch policy.detail {
        case .exact: refusal.detail += (detail.isEmpty ? "" : ": ") + need
        case .coarse: refusal.remedy = need
        }
        return refusal
    }
}

extension Refusal.Code {
    /// Whether the refusal is about the request's proof: its sender, time, uniqueness or content.
    fileprivate var isOfProof: Bool {
        switch self {
        case .unsigned, .unknownKey, .badSignature, .stale, .replayed, .bodyMismatch, .tokenExpired,
            .schemeNotAllowed:
            true
        default: false
        }
    }
}
