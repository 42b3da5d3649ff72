import CountersignSchemes
import CountersignWire

/// Where a request is headed: what a release may ask for without a session depends on it.
package enum Destination: Sendable {
    case backend
    /// One of the authority's own, which says itself whom it admits.
    case ownRoute
    /// One where old clients sign in or renew their tokens: which token they still have is not asked.
    case login
}

/// Does the session that it claims still live, and if it claims none, does it need one?
package struct Sessions: Sendable {
    private let source: any SessionSource

    package init(_ source: any SessionSource) { self.source = source }

    /// Refuses a caller whose session is over, or who has none where the route needs one; `route` is nil for
    /// the authority's own. `now` is in whole Unix seconds.
    package func check(
        _ caller: Caller, on route: RouteRules.Decision?, at now: Int64
    ) throws(Refusal) {
        guard let session = caller.session else {
            if let route, route.level >= .session { throw caller.release.needsSession(on: route) }
            return
        }
        try Sessions.check(session, of: caller.release, at: now)
        source.noteUse(of: session, at: now)
    }

    /// Whether the session lives; `release` is the one that calls.
    static func check(_ session: Session, of release: ReleaseKey, at now: Int64) throws(Refusal) {
        if let end = session.end { throw Refusal(end, of: session.id) }
        if session.idleEnd <= now { throw Refusal(SessionEnd(.expired, at: session.idleEnd), of: session.id) }
        if session.expires <= now {
            try Bearers.checkRenewal(session, of: release)
            let until = CivilTime.internetText(session.expires)
            throw Refusal(.tokenExpired, "session \(session.id), epoch \(session.epoch): good until \(until)")
        }
    }
}

extension ReleaseKey {
    func needsSession(on route: RouteRules.Decision) -> Refusal {
        let path = String(decoding: policy.routes.rules[route.index].prefix, as: UTF8.self)
        return Refusal(
            .sessionEnded,
            "this route needs a session: \(path) asks for `\(route.level.rawValue)`; `countersign route "
                + "set \(app) \(path) "
                + "--require signed` lets a release in by itself")
    }

    /// What a route of level `device` asks for, and how to ask for less: for the detail of a refusal.
    func demandOfDevice(by route: RouteRules.Decision) -> String {
        let path = String(decoding: policy.routes.rules[route.index].prefix, as: UTF8.self)
        return "\(path) asks for `\(route.level.rawValue)`; `countersign route set \(app) \(path) --require session` "
            + "does without the device's signature"
    }
}

extension Refusal {
    /// Told to callers whose signature held: nobody else learns why, or that there was a session.
    package init(_ end: SessionEnd, of session: SessionID) {
        let at = CivilTime.internetText(end.at)
        self.init(.sessionEnded, "session \(session): \(end.reason.rawValue) at \(at)")
        ended = Ended(reason: end.reason.rawValue, at: end.at, by: end.by)
    }
}
