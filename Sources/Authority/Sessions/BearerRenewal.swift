import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One renewal, as the writer's thread runs it: what is in the store decides, and only what is still there is replaced.
package struct BearerRenewal: Sendable {
    /// What becomes of the login token.
    package enum Habit: Sendable {
        /// A new one with each renewal, so that one that was copied shows: on our own wire.
        case rotating
        /// It stays, as clients in the field expect. Source: legacy clients' `POST /login/token.php`.
        case keeping
    }

    enum Outcome: Sendable {
        case renewed(StoredSession, BearerToken, LoginToken)
        /// It is over, or it is now; told to who holds its login token.
        case ended(StoredSession, SessionEnd)
        case none
    }

    let presented: LoginToken
    /// Whose call it is; nil where no release signed it.
    let release: KeyID?
    let habit: Habit
    /// Seconds.
    let lifetime: Int64
    let idle: Int64
    /// Whole Unix seconds.
    let now: Int64
    let key: HMACSHA256

    func run(_ id: SessionID, of app: AppName, in store: any Store, recording draft: AuditDraft) throws(Fault)
        -> Outcome
    {
        // Another process may change the row between the look and the swap; whoever comes second looks again.
        while true {
            guard let session = try store.session(id), session.app == app, case .bearer(let old) = session.credentials
            else { return .none }
            if let end = session.end { return .ended(session, end) }
            guard session.used + idle > now else {
                return try end(session, SessionEnd(.expired, at: now), in: store, recording: nil)
            }
            // First, since one of several calls that asked at once may have used its answer already.
            if let (token, loginToken) = answerOfAMomentAgo(id, old) { return .renewed(session, token, loginToken) }
            // Neither the current one nor the one before it, whose successor nobody has used: somebody has a copy.
            guard presented.matches(old.loginTokenHash) || old.previousLoginTokenHash.map(presented.matches) == true
            else { return try end(session, SessionEnd(.reused, at: now), in: store, recording: draft) }
            guard let (next, token, loginToken) = next(of: id, after: old) else { return .none }
            switch try store.swap(id, .bearer(old), for: .bearer(next), by: release, at: now) {
            case .yes(let session): return .renewed(session, token, loginToken)
            case .moved: continue
            case .missing: return .none
            }
        }
    }

    /// What this very login token was answered with, if that was just now; the store stays as it is.
    private func answerOfAMomentAgo(
        _ id: SessionID, _ old: BearerCredentials
    ) -> (token: BearerToken, loginToken: LoginToken)? {
        let successor = successor(old.issued)
        guard now - old.issued < BearerSessions.sameAnswerSeconds, now < old.tokenExpires,
            successor.matches(old.loginTokenHash), let token = successor.token(of: id, issued: old.issued, under: key)
        else { return nil }
        return (token, successor)
    }

    /// What takes the place of `old`.
    private func next(
        of id: SessionID, after old: BearerCredentials
    ) -> (BearerCredentials, token: BearerToken, loginToken: LoginToken)? {
        // Never the time before again, though the clock be set back: another time makes other tokens.
        let issued = max(now, old.issued + 1)
        let successor = successor(issued)
        guard let token = successor.token(of: id, issued: issued, under: key) else { return nil }
        var next = BearerCredentials(
            tokenHash: token.hash, tokenExpires: now + lifetime, issued: issued, loginTokenHash: successor.hash)
        next.previousTokenHash = old.tokenHash
        if habit == .rotating { next.previousLoginTokenHash = presented.hash }
        return (next, token, successor)
    }

    private func successor(_ issued: Int64) -> LoginToken {
        switch habit {
        case .rotating: presented.successor(issued: issued, under: key)
        case .keeping: presented
        }
    }

    private func end(
        _ session: StoredSession, _ end: SessionEnd, in store: any Store, recording draft: AuditDraft?
    ) throws(Fault) -> Outcome {
        _ = try store.end(.one(session.id), end, recording: draft)
        guard let session = try store.session(session.id), let end = session.end else { return .none }
        return .ended(session, end)
    }
}
