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

    /// The same on a rung of the ladder, under the app's next user id; nil where there is, or was, one of
    /// that name.
    nonisolated(nonsending) package func signUp(
        _ credential: LegacyCredential, _ name: AccountName, in app: AppName, at now: Int64
    ) async throws(Refusal) -> Account? {
        var account = AccountDraft(app: app, name: name, created: now)
        account.legacy = credential
        let (added, draft) = (account, recording(.accountRegister, name, app))
        let inserted = try await sessions.writer.write { (store) throws(Fault) in
            try store.insert(added, recording: draft)
        }
        guard case .yes(let made) = inserted else { return nil }
        return made
    }

    /// In place of what the account's rung was judged by when the old password was proved; ends all sessions
    /// but that one. False where it is not on the ladder by that any more, or is locked.
    nonisolated(nonsending) package func change(
        _ credential: LegacyCredential, of account: Account, keeping session: SessionID?, at now: Int64
    ) async throws(Refusal) -> Bool {
        guard let legacy = account.legacy else { return false }
        let draft = recording(.accountPassword, account.name, account.app)
        let replaced = try await sessions.writer.write { (store) throws(Fault) -> Replaced in
            guard try store.account(account.number)?.state == .active else { return .wrong }
            let changed = try store.change(
                account.number, if: .legacy(legacy), .legacyPassword(credential, keeping: session), at: now,
                recording: draft)
            guard case .yes(let ended) = changed else { return .wrong }
            return .yes(ended: try SessionLife.rows(of: ended, in: store))
        }
        guard case .yes(let ended) = replaced else { return false }
        sessions.live.take(ended)
        return true
    }

    /// In place of whatever opened the account before; ends all of its sessions. `wrong-credentials` for a code that is not
    /// good, and for a name without an account, by the same way through the writer; `forbidden` where the account is locked, to who
    /// holds the code, which stays good.
    nonisolated(nonsending) package func reset(
        _ registration: StoredRegistration, _ name: AccountName, in app: AppName, by code: ResetCode, at now: Int64
    ) async throws(Refusal) {
        let replacement = Replacement(
            expected: .reset(codeHash: code.hash), registration: registration, kept: nil,
            draft: recording(.accountReset, name, app))
        try await put(replacement, at: now) { (store) throws(Fault) in try store.account(name, of: app) }
    }

    /// In place of the registration whose password was proved; ends all sessions but that one.
    nonisolated(nonsending) package func change(
        _ registration: StoredRegistration, of proved: ProvedLogin, keeping session: SessionID, at now: Int64
    ) async throws(Refusal) {
        let account = proved.account
        let replacement = Replacement(
            expected: .credential(proved.credential), registration: registration, kept: session,
            draft: recording(.accountPassword, account.name, account.app))
        try await put(replacement, at: now) { (store) throws(Fault) in try store.account(account.number) }
    }

    /// Takes an account off the ladder by a registration of the password that its login has just proved; its sessions go on. Nil
    /// where it is not on the ladder by that any more, or is locked. Source: decision 0021.
    nonisolated(nonsending) package func upgrade(
        _ account: Account, to registration: StoredRegistration, at now: Int64
    ) async throws(Refusal) -> Account? {
        guard let legacy = account.legacy else { return nil }
        let draft = recording(.accountUpgrade, account.name, account.app)
        let changed = try await sessions.writer.write { (store) throws(Fault) -> AccountChanged in
            guard try store.account(account.number)?.state == .active else { return .missing }
            return try store.change(
                account.number, if: .legacy(legacy), .upgrade(registration), at: now, recording: draft)
        }
        guard case .yes = changed else { return nil }
        var upgraded = account
        (upgraded.legacy, upgraded.registration) = (nil, registration)
        return upgraded
    }

    /// A registration that takes the place of another credential.
    private struct Replacement: Sendable {
        let expected: AccountExpectation
        let registration: StoredRegistration
        /// The session that stays.
        let kept: SessionID?
        let draft: AuditDraft
    }

    private enum Replaced: Sendable {
        case yes(ended: [StoredSession])
        case wrong
        case locked
    }

    /// What has ended with the change is let in no more once this returns. A locked account keeps what it has: to let somebody in
    /// again is for who locked it to decide.
    nonisolated(nonsending) private func put(
        _ new: Replacement, at now: Int64, for find: @escaping @Sendable (any Store) throws(Fault) -> Account?
    ) async throws(Refusal) {
        let replaced = try await sessions.writer.write { (store) throws(Fault) -> Replaced in
            guard let account = try find(store), account.state != .removed, new.expected.holds(of: account, at: now)
            else { return .wrong }
            guard account.state == .active else { return .locked }
            let changed = try store.change(
                account.number, if: new.expected, .register(new.registration, keeping: new.kept), at: now,
                recording: new.draft)
            guard case .yes(let ended) = changed else { return .wrong }
            return .yes(ended: try SessionLife.rows(of: ended, in: store))
        }
        switch replaced {
        case .yes(let ended): sessions.live.take(ended)
        case .wrong: throw Login.wrong
        case .locked: throw Refusal(.forbidden, "the account is locked")
        }
    }

    private func recording(_ action: AuditAction, _ name: AccountName, _ app: AppName) -> AuditDraft {
        sessions.deployment.recording(action, .account(name, of: app), by: .account(name, of: app))
    }
}
