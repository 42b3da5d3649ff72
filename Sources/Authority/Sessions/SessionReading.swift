import CountersignGate
import CountersignWire

/// What is told about sessions, read by the loops' own connection.
extension SessionLife {
    /// Those that live, the oldest first.
    package func readLive(of account: Int64) throws(Refusal) -> [StoredSession] {
        try attempt { () throws(Fault) in try reader.sessions(of: account).filter { $0.end == nil } }
    }

    package func readAccount(_ number: Int64) throws(Refusal) -> Account? {
        try attempt { () throws(Fault) in try reader.account(number) }
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
