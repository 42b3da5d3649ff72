import CountersignSchemes
import CountersignWire
import Glibc

/// An action before it has its place in the log. It never contains a secret: the code that adds a detail
/// must ensure that.
package struct AuditEntry: Sendable {
    package var actor: AuditActor
    package var action: AuditAction
    package var subject: AuditSubject
    /// By name, in display order.
    package var details: [(name: String, value: JSONValue)]

    /// The record's bytes: one JSON object, without white space, members in this order. The log
    /// authenticates and stores these bytes; they are never encoded again from their meaning.
    /// Accounts are named by their pseudonyms.
    func record(
        number: Int64, at time: Int64, naming lookup: PseudonymLookup
    ) throws(OperationalError) -> [UInt8] {
        var members: [(name: String, value: JSONValue)] = [
            ("number", .integer(number)), ("time", .integer(time)),
            ("actor", try actor.json(naming: lookup)), ("action", .string(action.rawValue)),
        ]
        members += try subject.members(naming: lookup)
        members.append(("details", .object(details)))
        return JSONValue.object(members).bytes
    }
}

/// The party that performed the action.
package enum AuditActor: Sendable, Equatable {
    /// The user that ran the command, as the system reports it: the real user id, and the login name if
    /// there is one.
    case user(id: UInt32, name: String?)
    /// The account itself, by a session or its reset code.
    case account(AccountName, of: AppName)
    /// A program that called the admin API with that token.
    case token(id: String, name: String)
    /// The server, applying its rules.
    case server

    package var isAdministrator: Bool {
        switch self {
        case .user, .token: true
        case .account, .server: false
        }
    }

    package static var thisProcess: AuditActor {
        let id = getuid()
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16_384)
        guard getpwuid_r(id, &entry, &buffer, buffer.count, &found) == 0, found != nil,
            let name = entry.pw_name
        else {
            return .user(id: id, name: nil)
        }
        return .user(id: id, name: String(cString: name))
    }

    fileprivate func json(naming lookup: PseudonymLookup) throws(OperationalError) -> JSONValue {
        switch self {
        case .user(let id, let name):
            return ["kind": "os-user", "uid": .integer(Int64(id)), "name": .optional(name)]
        case .account(let name, let app):
            let pseudonym = try lookup(name, app)
            return [
                "kind": "account", "app": .string(app.description),
                "pseudonym": .string(pseudonym.description),
            ]
        case .token(let id, let name):
            return ["kind": "token", "id": .string(id), "name": .string(name)]
        case .server: return ["kind": "server"]
        }
    }
}

/// The kind of action.
package enum AuditAction: String, Sendable, CaseIterable {
    case appAdd = "app.add"
    case appPolicy = "app.policy"
    case appMessages = "app.messages"
    case releaseAdd = "release.add"
    case releasePolicy = "release.policy"
    case releaseRetire = "release.retire"
    case releaseUndo = "release.undo"
    case nextKeyAdd = "release.next-key.add"
    case nextKeyPromote = "release.next-key.promote"
    case nextKeyDrop = "release.next-key.drop"
    case assertionKeysRotate = "assertion-keys.rotate"
    case answerKeyRotate = "answer-key.rotate"
    case registrationKeyRotate = "registration-key.rotate"
    case masterKeyBegin = "master-key.begin"
    case masterKeyRotate = "master-key.rotate"
    case pinsPublish = "pins.publish"
    case accountAdd = "account.add"
    case accountImport = "account.import"
    case accountRegister = "account.register"
    case accountPassword = "account.password"
    case accountReset = "account.reset"
    case accountCode = "account.code"
    case accountRedeem = "account.redeem"
    case accountVerify = "account.verify"
    case accountUpgrade = "account.upgrade"
    case accountLegacy = "account.legacy"
    case accountLock = "account.lock"
    case accountUnlock = "account.unlock"
    case accountRemove = "account.remove"
    case accountForgetDevice = "account.forget-device"
    case accountErase = "account.erase"
    /// All data about the account was exported.
    case accountExport = "account.export"
    case accountUserID = "account.user-id"
    case sessionRevoke = "session.revoke"
    case sessionReuse = "session.reuse"
    case replayConfirmClock = "replay.confirm-clock"
    case clockDoubt = "clock.doubt"
    case clockTrust = "clock.trust"
    case nodesChange = "nodes.change"
    case nodesRejectReport = "nodes.reject-report"
    case rowsAccept = "rows.accept"
    case storeMove = "store.move"
    case backupRestore = "backup.restore"
    case tokenAdd = "token.add"
    case tokenRevoke = "token.revoke"
    case consoleSignIn = "console.sign-in"
    case consoleSignOut = "console.sign-out"
    case webhookAdd = "webhook.add"
    case webhookRemove = "webhook.remove"
    case webhookKeyRotate = "webhook-key.rotate"
}

/// The object of the action.
package enum AuditSubject: Sendable {
    case deployment
    case app(AppName)
    case release(KeyID, of: AppName)
    case account(AccountName, of: AppName)
    case session(SessionID, of: AppName)

    fileprivate func members(
        naming lookup: PseudonymLookup
    ) throws(OperationalError) -> [(name: String, value: JSONValue)] {
        switch self {
        case .deployment: return []
        case .app(let name): return [("app", .string(name.description))]
        case .release(let id, let app):
            return [("app", .string(app.description)), ("release", .string(id.description))]
        case .account(let name, let app):
            let pseudonym = try lookup(name, app)
            return [("app", .string(app.description)), ("pseudonym", .string(pseudonym.description))]
        case .session(let id, let app):
            return [("app", .string(app.description)), ("session", .string(id.description))]
        }
    }
}
