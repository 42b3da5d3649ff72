import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What administrators do to accounts and sessions. Each is durable, and seen by a running server, once it returns.
extension Deployment {
    package func account(_ name: AccountName, of app: AppName) throws(Fault) -> Account {
        _ = try self.app(app)
        guard let account = try store.account(name, of: app) else {
            throw Fault(.failed, "account \(name): \(app) has none of that name")
        }
        return account
    }

    /// One whose clients still send its password by a rung of the ladder. What the rung needs is kept wrapped; the password is
    /// not. Computes a slow hash.
    package func addLegacyAccount(
        _ name: AccountName, of app: AppName, on rung: Rung, password: Secret, userID: Int64? = nil, at now: Int64
    ) throws(Fault) -> Account {
        let app = try self.app(app)
        var draft = AccountDraft(app: app.name, name: name, userID: userID, created: now)
        let settings = try ladder(of: app, try app.policy())
        let kept: Secret
        do throws(LadderSettings.Missing) {
            kept = try LoginLadder.kept(password, on: rung, settings)
        } catch {
            throw Fault(.failed, "account \(name): \(error)")
        }
        do throws(PasswordHash.OutOfMemory) {
            draft.legacy = try LegacyCredential(
                keeping: kept, on: rung, of: LegacyAccountID(app: app.name, name: name), under: masterKey,
                cost: .standard)
        } catch {
            throw Fault(.failed, "not enough memory for one password hash")
        }
        let told: [(name: String, value: JSONValue)] = [("legacy", .string(rung.rawValue))]
        let audit = recording(.accountAdd, .account(name, of: app.name), told)
        switch try store.insert(draft, recording: audit) {
        case .yes(let account): return account
        case .taken(.name): throw Fault(.failed, "account \(name): \(app.name) has, or had, one of that name")
        case .taken(.userID): throw Fault(.failed, "account \(name): another has the user id \(userID ?? 0)")
        }
    }

    /// Nobody signs in to it until it is unlocked, and its sessions end.
    package func lockAccount(_ name: AccountName, of app: AppName, at now: Int64) throws(Fault) -> [SessionID] {
        try change(name, of: app, to: .lock, .accountLock, at: now)
    }

    package func unlockAccount(_ name: AccountName, of app: AppName, at now: Int64) throws(Fault) {
        _ = try change(name, of: app, to: .unlock, .accountUnlock, at: now)
    }

    /// For good: its credentials are dropped and its sessions end. The name stays taken, because the backend knows somebody by
    /// it.
    package func removeAccount(_ name: AccountName, of app: AppName, at now: Int64) throws(Fault) -> [SessionID] {
        try change(name, of: app, to: .remove, .accountRemove, at: now)
    }

    /// The accounts of an app by number, a page at a time: those behind `number`, removed ones too.
    package func accounts(of app: AppName, after number: Int64, limit: Int) throws(Fault) -> [Account] {
        _ = try self.app(app)
        return try store.accounts(of: app, after: number, limit: limit)
    }

    /// Ends one session, whosever it is.
    package func revokeSession(_ id: SessionID, at now: Int64) throws(Fault) -> SessionRevoked {
        guard let session = try store.session(id) else { throw Fault(.failed, "session \(id): there is none") }
        let draft = recording(.sessionRevoke, .session(id, of: session.app), [("account", .integer(session.account))])
        let ended = try store.end(.one(id), SessionEnd(.revoked, at: now), recording: draft)
        generation.advance()
        return ended.isEmpty ? .hadEnded : .yes
    }

    private func change(
        _ name: AccountName, of app: AppName, to change: AccountChange, _ action: AuditAction, at now: Int64
    ) throws(Fault) -> [SessionID] {
        let account = try account(name, of: app)
        guard account.state != .removed else { throw Fault(.failed, "account \(name): was removed; that is for good") }
        let draft = recording(action, .account(name, of: app))
        switch try store.change(account.number, if: .anything, change, at: now, recording: draft) {
        case .yes(let ended):
            generation.advance()
            return ended
        case .missing: throw Fault(.failed, "account \(name): was removed meanwhile")
        }
    }
}

package enum SessionRevoked: Sendable, Equatable {
    case yes
    /// It was over before.
    case hadEnded
}
