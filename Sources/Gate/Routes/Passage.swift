import CountersignSchemes
import CountersignWire

/// Why a refused request goes on to the backend all the same, without an identity.
package struct Passage: Sendable {
    package enum Cause: Sendable, Equatable {
        /// Its route is open to anybody.
        case open
        /// It would be refused for this, and is let through to show what enforcing would do.
        case observed(Refusal.Code)
    }

    package let cause: Cause
    /// Whose rules say so.
    package let app: String
    /// The release that it names, rightly or not; nil where it names none.
    package let release: ReleaseKey?
}

extension Gate {
    /// Why a request to the backend goes on although it was refused; nil where the refusal stands. That is so
    /// for all that is not about what it proves (framing, limits, hosts, revocation, an outage), and wherever
    /// it belongs to no app.
    package func passage(
        of request: Request, _ judgement: Judgement, after refusal: Refusal
    ) throws(Refusal) -> Passage? {
        // Whoever sends a ticket means it to count: its refusal is not passed over where an app observes.
        guard !request.names.contains(.countersignTicket) else { return nil }
        guard refusal.code.isOfProof, let owner = try owner(of: request, judgement) else { return nil }
        let route = try owner.policy.routes.decision(for: request)
        func passage(_ cause: Passage.Cause) -> Passage {
            Passage(cause: cause, app: owner.app, release: judgement.release)
        }
        if route.level == .open, refusal.code == .unsigned { return passage(.open) }
        guard (route.enforcement ?? owner.policy.enforcement).isObserving(at: clock.now) else { return nil }
        return passage(.observed(refusal.code))
    }

    /// The app whose release the request names, where it came to that app's host; without a release, the app
    /// whose host it came to.
    private func owner(
        of request: Request, _ judgement: Judgement
    ) throws(Refusal) -> (app: String, policy: Policy)? {
        let hosted = try keys.app(at: request)
        guard let release = judgement.release else { return hosted.map { ($0.name, $0.policy) } }
        guard release.policy.legacyHost == nil || hosted?.name == release.app else { return nil }
        return (release.app, release.policy)
    }
}

extension Refusal.Code {
    /// Whether it is about what a request has to prove of itself: who sent it, when, how often, and what.
    fileprivate var isOfProof: Bool {
        switch self {
        case .unsigned, .unknownKey, .badSignature, .stale, .replayed, .bodyMismatch, .tokenExpired, .schemeNotAllowed:
            true
        default: false
        }
    }
}
