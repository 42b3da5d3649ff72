import CountersignGate
import CountersignWire

/// What is told about sessions, read by the loops' own connection.
extension SessionLife {
    /// Those that live, the oldest first; of more than `limit` the newest.
    package func readLive(of account: Int64, newest limit: Int) throws(Refusal) -> [StoredSession] {
        try attempt { () throws(Fault) in try reader.liveSessions(of: account, newest: limit) }
    }

    package func readAccount(_ number: Int64) throws(Refusal) -> Account? {
        try attempt { () throws(Fault) in try reader.account(number) }
    }

    /// When the token of the request under `session` runs out: whole Unix seconds. Under a key that was offered the time begins
    /// with its first use, which may be this request; `row` may show that use, or not yet.
    package func expiry(of session: Session, _ row: StoredSession, at now: Int64) throws(Refusal) -> Int64 {
        guard session.edition == .offered, case .device(let device) = row.credentials else { return session.expires }
        let ahead = live.shard(of: row.id).confirmation(of: row.id)
        let began = device.epoch == session.epoch ? device.epochBegan : ahead?.at ?? now
        return began.later(by: try policy(of: row.app).tokenLifetime)
    }

    /// When it ends unless it is renewed before: whole Unix seconds.
    package func idleEnd(of session: StoredSession) throws(Refusal) -> Int64 {
        session.used.later(by: try policy(of: session.app).sessionIdle)
    }

    /// Ends a session of that account, which asked for it from another one; nothing where it is another's, or over.
    nonisolated(nonsending) package func revoke(
        _ id: SessionID, by account: Account, at now: Int64
    ) async throws(Refusal) -> [SessionID] {
        let draft = deployment.recording(
            .sessionRevoke, .session(id, of: account.app), by: .account(account.name, of: account.app))
        return try await end(.oneOf(id, account: account.number), SessionEnd(.revoked, at: now), recording: draft)
    }
}
