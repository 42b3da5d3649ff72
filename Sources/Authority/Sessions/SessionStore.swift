import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// Sessions: the truth about which of them live. Every change is a compare-and-swap on the row, in one transaction; of a
/// refresh, a logout, a revocation and a replacement that race, one comes first and the others see it.
package protocol SessionStore: Sendable {
    /// Adds a session to an account that is active and still has what was proved (``Account/isProved(by:)``), ends those that its
    /// slot has no room for, and forgets those beyond the ``SlotRule/mostEnded`` of the account that ended last. One transaction.
    func open(
        _ session: StoredSession, proving credential: [UInt8]?, slots: SlotRule, at now: Int64
    ) throws(Fault) -> SessionOpened

    func session(_ id: SessionID) throws(Fault) -> StoredSession?
    /// Live ones, by their creation; behind them the ended ones while they are kept.
    func sessions(of account: Int64) throws(Fault) -> [StoredSession]
    /// Of those that live the newest, the oldest of them first. For threads that wait for nothing: what it reads is bounded.
    func liveSessions(of account: Int64, newest limit: Int) throws(Fault) -> [StoredSession]
    /// How many live, by platform and by the release that they were last renewed under. Reads all of the app's.
    func liveSessions(of app: AppName) throws(Fault) -> [LiveSessionCount]
    /// By account, and of each as above.
    func sessions(of app: AppName, limit: Int) throws(Fault) -> [StoredSession]

    /// Puts `next` in the place of credentials that are still `old`; answers the row as it then is. `used` moves to `now`, and
    /// ``StoredSession/release`` to `release`, unless that is nil: then it stays.
    func swap(
        _ id: SessionID, _ old: StoredSession.Credentials, for next: StoredSession.Credentials, by release: KeyID?,
        at now: Int64
    ) throws(Fault) -> SessionSwapped

    /// Ends those of them that live; answers which did. Recorded where any did, with `recording`.
    func end(
        _ which: SessionSelection, _ end: SessionEnd, recording draft: AuditDraft?
    ) throws(Fault) -> [SessionID]

    /// The number of the last change of any session.
    func sessionChange() throws(Fault) -> Int64
    /// Every session that changed after that number, in the order of the changes, a page at a time; ended ones too.
    func sessions(changedAfter change: Int64, limit: Int) throws(Fault) -> [StoredSession]

    /// Forgets ended sessions that ended before that time, at most so many; answers which.
    func forgetSessions(endedBefore time: Int64, limit: Int) throws(Fault) -> [SessionID]
    /// Ends, as expired, the app's that were last used before that time, the longest unused first and at most so many;
    /// answers which. By app, because each has an idle time of its own.
    func expireSessions(
        of app: AppName, usedBefore time: Int64, limit: Int, at now: Int64
    ) throws(Fault) -> [SessionID]
}

package enum SessionOpened: Sendable, Equatable {
    /// The row as stored, the sessions whose place it took, and those that ended before and are known no more.
    case yes(StoredSession, ended: [StoredSession], forgotten: [SessionID])
    /// The account is locked, removed, or has another credential by now.
    case accountChanged
}

package enum SessionSwapped: Sendable, Equatable {
    case yes(StoredSession)
    /// Somebody else was first; this is how it is now.
    case moved(StoredSession)
    case missing
}

extension SessionStore {
    /// The same where no release asks for it.
    package func swap(
        _ id: SessionID, _ old: StoredSession.Credentials, for next: StoredSession.Credentials, at now: Int64
    ) throws(Fault) -> SessionSwapped {
        try swap(id, old, for: next, by: nil, at: now)
    }
}

/// So many live sessions of an app on one platform, under one release.
package struct LiveSessionCount: Sendable, Equatable {
    package var platform: Platform
    /// Nil for those of which it is not known.
    package var release: KeyID?
    package var count: Int

    package init(platform: Platform, release: KeyID?, count: Int) {
        self.platform = platform
        self.release = release
        self.count = count
    }
}

package enum SessionSelection: Sendable, Equatable {
    case one(SessionID)
    /// One, if it is that account's.
    case oneOf(SessionID, account: Int64)
    case account(Int64, except: SessionID?)
    case app(AppName)
    case all
}
