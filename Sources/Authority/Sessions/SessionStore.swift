import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// The stored sessions, which decide which sessions are live. Every change is a compare-and-swap on the row
/// in one transaction: if a refresh, a logout, a revocation and a replacement race, one commits first and
/// the others see its result.
package protocol SessionStore: Sendable {
    /// Adds a session to an account that is active and still has the verified credential
    /// (``Account/isProved(by:)``), ends those that its slot rule has no room for, and deletes all but the
    /// ``SlotRule/mostEnded`` sessions of the account that ended last. One transaction.
    func open(
        _ session: StoredSession, proving credential: [UInt8]?, slots: SlotRule, at now: Int64
    ) throws(OperationalError) -> SessionOpenOutcome

    /// Throws if the row is not authentic. The other reads leave such rows out, unless they say otherwise.
    func session(_ id: SessionID) throws(OperationalError) -> StoredSession?
    /// Live sessions by their creation, followed by the ended ones while they are retained.
    func sessions(of account: Int64) throws(OperationalError) -> [StoredSession]
    /// The newest live sessions, the oldest of them first. The read is bounded, for threads that must not
    /// block.
    func liveSessions(of account: Int64, newest limit: Int) throws(OperationalError) -> [StoredSession]
    /// The number of live sessions by platform and by the release that they were last renewed under. Reads
    /// all of the app's sessions.
    func liveSessions(of app: AppName, usedSince time: Int64) throws(OperationalError) -> [LiveSessionCount]
    /// By account, and within an account in the order of ``sessions(of:)``.
    func sessions(of app: AppName, limit: Int) throws(OperationalError) -> [StoredSession]

    /// Replaces the credentials by `next` if they are still `old`, and returns the current row. Sets `used`
    /// to `now`, and ``StoredSession/release`` to `release` unless that is nil.
    func swap(
        _ id: SessionID, from old: StoredSession.Credentials, to next: StoredSession.Credentials,
        by release: KeyID?,
        at now: Int64
    ) throws(OperationalError) -> SessionSwapOutcome

    /// Ends the selected sessions that are live and returns their ids. If there are any, `draft` is
    /// recorded.
    func end(
        _ which: SessionSelection, with end: SessionTermination, recording draft: AuditDraft?
    ) throws(OperationalError) -> [SessionID]

    /// Ends a session, and forgets its device if `device` says so, also if the session had ended before. With
    /// an `account`, does nothing to the session of another one. If anything changed, `draft` is recorded.
    func revoke(
        _ id: SessionID, of account: Int64?, device: RevokedDevice, with end: SessionTermination,
        recording draft: AuditDraft
    ) throws(OperationalError) -> SessionRevocation

    /// The number of the last change of any session.
    func sessionChange() throws(OperationalError) -> Int64
    /// Every session that changed after that number, in the order of the changes, a page at a time, ended
    /// ones included. The rows are not verified, so that a server can start with a million of them; a session
    /// is verified by ``session(_:)`` before its first use.
    func sessions(changedAfter change: Int64, limit: Int) throws(OperationalError) -> [StoredSession]
    /// The same without the columns that no outline has, so that a million are read in a second. The outline
    /// of a device-bound session has no secret.
    func outlines(changedAfter change: Int64, limit: Int) throws(OperationalError) -> [SessionOutline]

    /// Deletes at most `limit` sessions that ended before that time and returns their ids.
    func forgetSessions(endedBefore time: TrustedTime, limit: Int) throws(OperationalError) -> [SessionID]
    /// Deletes at most `limit` sessions of the app that were never ended and were last used before `idle` or
    /// begun before `age`. The longest unused and the oldest go first. Returns their ids. It works by app,
    /// because each app has its own idle time and, unless `age` is nil, its own maximum age.
    func forgetSessions(
        of app: AppName, usedBefore idle: TrustedTime, createdBefore age: TrustedTime?, limit: Int
    ) throws(OperationalError) -> [SessionID]
}

package enum SessionOpenOutcome: Sendable, Equatable {
    /// The row as stored, the sessions that it displaced, and the earlier ended ones that were deleted.
    case yes(StoredSession, ended: [StoredSession], forgotten: [SessionID])
    /// The account is locked, removed, or has another credential now.
    case accountChanged
}

package enum SessionSwapOutcome: Sendable, Equatable {
    case yes(StoredSession)
    /// Another writer changed the row first; this is the current row.
    case moved(StoredSession)
    case missing
}

extension SessionStore {
    /// The same without a release that asks for the change.
    package func swap(
        _ id: SessionID, from old: StoredSession.Credentials, to next: StoredSession.Credentials,
        at now: Int64
    ) throws(OperationalError) -> SessionSwapOutcome {
        try swap(id, from: old, to: next, by: nil, at: now)
    }
}

/// The number of live sessions of an app on one platform under one release.
package struct LiveSessionCount: Sendable, Equatable {
    package var platform: Platform
    /// Nil for sessions whose release is not known.
    package var release: KeyID?
    package var count: Int

    package init(platform: Platform, release: KeyID?, count: Int) {
        self.platform = platform
        self.release = release
        self.count = count
    }
}

/// What becomes of the device of a revoked session. A device that is forgotten has no login limit of its own
/// any more, until it signs in again.
package enum RevokedDevice: Sendable, Equatable {
    case kept
    case forgotten
    /// Forgotten, unless this session is of the same device: the one that revokes stays known.
    case forgottenUnlessOf(SessionID)
}

package struct SessionRevocation: Sendable, Equatable {
    /// Whether the session was live.
    package var didEnd = false
    package var didForgetDevice = false

    package init() {}
}

package enum SessionSelection: Sendable, Equatable {
    case one(SessionID)
    /// The session, if it belongs to that account.
    case oneOf(SessionID, account: Int64)
    case account(Int64, except: SessionID?)
    case app(AppName)
    case all
}
