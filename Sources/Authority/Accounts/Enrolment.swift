import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire

/// Stores a registration through the server's writer: a sign-up's, one by a reset code, or one that changes
/// a password. The transaction that writes it also decides and records it.
package final class Enrolment: Sendable {
    private let sessions: SessionLifecycle

    package init(_ sessions: SessionLifecycle) { self.sessions = sessions }

    private func tombstones(of name: AccountName, in app: AppName) throws(Refusal) -> AccountTombstones {
        try sessions.unavailableOnFault { () throws(OperationalError) in
            try sessions.deployment.tombstones(of: name, userID: nil, in: app)
        }
    }

    /// Adds the account; refuses with `name-taken` if the app has, or had, one of that name.
    package func signUp(
        _ registration: StoredRegistration, name: AccountName, in app: AppName, at now: Int64
    ) async throws(Refusal) {
        var account = AccountDraft(
            app: app, name: name, created: now, tombstones: try tombstones(of: name, in: app))
        account.registration = registration
        let (added, draft) = (account, auditDraft(for: .accountRegister, name: name, in: app))
        let inserted = try await sessions.writer.write { (store) throws(OperationalError) in
            try store.insert(added, recording: draft)
        }
        guard case .yes = inserted else {
            throw Refusal(.nameTaken, detail: "\(app) has an account of that name")
        }
    }

    /// Adds an account on a rung of the ladder, without a user id; returns nil if the app has, or
    /// had, one of that name.
    package func signUp(
        _ credential: LegacyCredential, name: AccountName, in app: AppName, at now: Int64
    ) async throws(Refusal) -> Account? {
        var account = AccountDraft(
            app: app, name: name, created: now, tombstones: try tombstones(of: name, in: app))
        account.legacy = credential
        let (added, draft) = (account, auditDraft(for: .accountRegister, name: name, in: app))
        let inserted = try await sessions.writer.write { (store) throws(OperationalError) in
            try store.insert(added, recording: draft)
        }
        guard case .yes(let made) = inserted else { return nil }
        return made
    }

    /// Replaces the legacy credential that the old password was verified against; ends all sessions except
    /// `session`. Returns false if the account no longer has that credential or is locked.
    package func change(
        _ credential: LegacyCredential, of account: Account, keeping session: SessionID?, at now: Int64
    ) async throws(Refusal) -> Bool {
        guard let legacy = account.legacy else { return false }
        let draft = auditDraft(for: .accountPassword, name: account.name, in: account.app)
        let replaced = try await sessions.writer.write { (store) throws(OperationalError) -> ReplaceOutcome in
            guard try store.account(account.number)?.state == .active else { return .wrong }
            let changed = try store.change(
                account.number, if: .legacy(legacy), applying: .legacyPassword(credential, keeping: session),
                at: now,
                recording: draft)
            guard case .yes(let ended) = changed else { return .wrong }
            return .yes(ended: try SessionLifecycle.rows(of: ended, in: store))
        }
        guard case .yes(let ended) = replaced else { return false }
        sessions.directory.apply(ended)
        return true
    }

    /// Replaces every credential of the account by a reset code; ends all of its sessions. Refuses with
    /// `wrong-credentials` for an invalid code and, by the same path through the writer, for a name without
    /// an account; with `forbidden` if the account is locked: only a holder of the code learns that, and
    /// the code stays valid. The account knows `device` from then on, and no other.
    package func reset(
        _ registration: StoredRegistration, name: AccountName, in app: AppName, by code: ResetCode,
        on device: ResetDevice? = nil, at now: Int64
    ) async throws(Refusal) {
        let entry = device.map {
            KnownDeviceEntry(
                device: KnownDevice(signingKey: $0.signingKey.bytes, lastSeen: now), kind: $0.kind,
                name: $0.name.description, firstSeen: now)
        }
        let replacement = Replacement(
            expected: .reset(codeHash: code.hash), change: .reset(registration, by: entry),
            draft: auditDraft(for: .accountReset, name: name, in: app))
        try await replaceCredential(replacement, at: now) { (store) throws(OperationalError) in
            try store.account(name, of: app)
        }
    }

    /// Replaces the registration whose password was verified; ends all sessions except `session`.
    package func change(
        _ registration: StoredRegistration, of proved: VerifiedLogin, keeping session: SessionID,
        at now: Int64
    ) async throws(Refusal) {
        let account = proved.account
        let replacement = Replacement(
            expected: .credential(proved.credential), change: .register(registration, keeping: session),
            draft: auditDraft(for: .accountPassword, name: account.name, in: account.app))
        try await replaceCredential(replacement, at: now) { (store) throws(OperationalError) in
            try store.account(account.number)
        }
    }

    /// Takes an account off the ladder by a registration of the password that its login just proved; its
    /// sessions continue. Returns nil if the account no longer has that legacy credential or is locked.
    /// Source: decision 0021.
    package func upgrade(
        _ account: Account, to registration: StoredRegistration, at now: Int64
    ) async throws(Refusal) -> Account? {
        guard let legacy = account.legacy else { return nil }
        let draft = auditDraft(for: .accountUpgrade, name: account.name, in: account.app)
        let changed = try await sessions.writer.write {
            (store) throws(OperationalError) -> AccountChangeOutcome in
            guard try store.account(account.number)?.state == .active else { return .missing }
            return try store.change(
                account.number, if: .legacy(legacy), applying: .upgrade(registration), at: now,
                recording: draft)
        }
        guard case .yes = changed else { return nil }
        var upgraded = account
        (upgraded.legacy, upgraded.registration) = (nil, registration)
        return upgraded
    }

    /// A registration that replaces another credential.
    private struct Replacement: Sendable {
        let expected: AccountPrecondition
        let change: AccountChange
        let draft: AuditDraft
    }

    private enum ReplaceOutcome: Sendable {
        case yes(ended: [StoredSession])
        case wrong
        case locked
    }

    /// When this returns, the gate no longer accepts the sessions that the change ended. A locked account
    /// stays unchanged: only the administrator unlocks it.
    private func replaceCredential(
        _ new: Replacement, at now: Int64,
        for find: @escaping @Sendable (any Store) throws(OperationalError) -> Account?
    ) async throws(Refusal) {
        let replaced = try await sessions.writer.write { (store) throws(OperationalError) -> ReplaceOutcome in
            guard let account = try find(store), account.state != .removed,
                new.expected.holds(of: account, at: now)
            else { return .wrong }
            guard account.state == .active else { return .locked }
            let changed = try store.change(
                account.number, if: new.expected, applying: new.change, at: now,
                recording: new.draft)
            guard case .yes(let ended) = changed else { return .wrong }
            return .yes(ended: try SessionLifecycle.rows(of: ended, in: store))
        }
        switch replaced {
        case .yes(let ended): sessions.directory.apply(ended)
        case .wrong: throw Login.wrongCredentials
        case .locked: throw Refusal(.forbidden, detail: "the account is locked")
        }
    }

    private func auditDraft(for action: AuditAction, name: AccountName, in app: AppName) -> AuditDraft {
        sessions.deployment.auditDraft(for: action, on: .account(name, of: app), by: .account(name, of: app))
    }
}
