import CountersignGate
import CountersignWire

/// Puts a registration in its place, through the server's writer: a sign-up's, one by a reset code, and the one that changes a
/// password. Each is decided and recorded in the transaction that writes it.
package final class Enrolment: Sendable {
    private let sessions: SessionLife

    package init(_ sessions: SessionLife) { self.sessions = sessions }

    /// Makes the account; `name-taken` where there is, or was, one of that name.
    nonisolated(nonsending) package func signUp(
        _ registration: StoredRegistration, _ name: AccountName, in app: AppName, at now: Int64
    ) async throws(Refusal) {
        var account = AccountDraft(app: app, name: name, created: now)
        account.registration = registration
        let (added, draft) = (account, recording(.accountRegister, name, app))
        let inserted = try await sessions.writer.write { (store) throws(Fault) in
            try store.insert(added, recording: draft)
        }
        guard case .yes = inserted else { throw Refusal(.nameTaken, "\(app) has an account of that name") }
    }

    /// In place of whatever opened the account before; ends all of its sessions. `wrong-credentials` for a code that is not
    /// good, and for a name without an account, by the same way through the writer.
    nonisolated(nonsending) package func reset(
        _ registration: StoredRegistration, _ name: AccountName, in app: AppName, by code: ResetCode, at now: Int64
    ) async throws(Refusal) {
        let (hash, draft) = (code.hash, recording(.accountReset, name, app))
        try await change { (store) throws(Fault) in
            let number = try store.account(name, of: app)?.number ?? 0
            return try store.change(
                number, if: .reset(codeHash: hash), .register(registration, keeping: nil), at: now, recording: draft)
        }
    }

    /// In place of the registration whose password was proved; ends all sessions but that one.
    nonisolated(nonsending) package func change(
        _ registration: StoredRegistration, of proved: ProvedLogin, keeping session: SessionID, at now: Int64
    ) async throws(Refusal) {
        let account = proved.account
        let draft = recording(.accountPassword, account.name, account.app)
        try await change { (store) throws(Fault) in
            try store.change(
                account.number, if: .credential(proved.credential), .register(registration, keeping: session), at: now,
                recording: draft)
        }
    }

    /// What has ended with the change is let in no more once this returns.
    nonisolated(nonsending) private func change(
        _ change: @escaping @Sendable (any Store) throws(Fault) -> AccountChanged
    ) async throws(Refusal) {
        let ended = try await sessions.writer.write { (store) throws(Fault) -> [StoredSession]? in
            guard case .yes(let ended) = try change(store) else { return nil }
            return try SessionLife.rows(of: ended, in: store)
        }
        guard let ended else { throw Login.wrong }
        sessions.live.take(ended)
    }

    private func recording(_ action: AuditAction, _ name: AccountName, _ app: AppName) -> AuditDraft {
        sessions.deployment.recording(action, .account(name, of: app), by: .account(name, of: app))
    }
}
