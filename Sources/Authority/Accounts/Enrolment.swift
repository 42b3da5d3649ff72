import CountersignGate
import CountersignWire

/// Puts a registration in its place, through the server's writer: a sign-up's, one by a reset code, and the one that changes a
/// password. Each is decided and recorded in the transaction that writes it.
package final class Enrolment: Sendable {
    private let deployment: Deployment
    private let writer: any StoreWriter

    package init(_ deployment: Deployment, _ writer: any StoreWriter) {
        self.deployment = deployment
        self.writer = writer
    }

    /// Makes the account; `name-taken` where there is, or was, one of that name.
    nonisolated(nonsending) package func signUp(
        _ registration: StoredRegistration, _ name: AccountName, in app: AppName, at now: Int64
    ) async throws(Refusal) {
        var account = AccountDraft(app: app, name: name, created: now)
        account.registration = registration
        let (added, draft) = (account, recording(.accountRegister, name, app))
        let inserted = try await writer.write { (store) throws(Fault) in try store.insert(added, recording: draft) }
        guard case .yes = inserted else { throw Refusal(.nameTaken, "\(app) has an account of that name") }
    }

    /// In place of whatever opened the account before; answers the sessions that ended, which are all. `wrong-credentials` for a
    /// code that is not good, and for a name without an account, by the same way through the writer.
    nonisolated(nonsending) package func reset(
        _ registration: StoredRegistration, _ name: AccountName, in app: AppName, by code: ResetCode, at now: Int64
    ) async throws(Refusal) -> [SessionID] {
        let (hash, draft) = (code.hash, recording(.accountReset, name, app))
        let changed = try await writer.write { (store) throws(Fault) -> AccountChanged in
            let number = try store.account(name, of: app)?.number ?? 0
            return try store.change(
                number, if: .reset(codeHash: hash), .register(registration, keeping: nil), at: now, recording: draft)
        }
        guard case .yes(let ended) = changed else { throw Login.wrong }
        return ended
    }

    /// In place of the registration whose password was proved; answers the sessions that ended, which are all others.
    nonisolated(nonsending) package func change(
        _ registration: StoredRegistration, of proved: ProvedLogin, keeping session: SessionID, at now: Int64
    ) async throws(Refusal) -> [SessionID] {
        let account = proved.account
        let draft = recording(.accountPassword, account.name, account.app)
        let changed = try await writer.write { (store) throws(Fault) in
            try store.change(
                account.number, if: .credential(proved.credential), .register(registration, keeping: session), at: now,
                recording: draft)
        }
        guard case .yes(let ended) = changed else { throw Login.wrong }
        return ended
    }

    private func recording(_ action: AuditAction, _ name: AccountName, _ app: AppName) -> AuditDraft {
        deployment.recording(action, .account(name, of: app), by: .account(name, of: app))
    }
}
