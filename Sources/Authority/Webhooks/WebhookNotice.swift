import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The kind of an event that endpoints are told of, as its payload names it.
package enum WebhookEventType: String, Sendable, CaseIterable {
    case accountRegistered = "account.registered"
    case accountLocked = "account.locked"
    case accountUnlocked = "account.unlocked"
    case accountRemoved = "account.removed"
    case passwordChanged = "account.password-changed"
    /// A reset code was made; it is not in the payload.
    case resetRequested = "account.reset-requested"
    case accountVerified = "account.verified"
    case sessionStarted = "session.started"
    /// The first sign-in of a device that the account did not know.
    case deviceAdded = "device.added"
    case sessionEnded = "session.ended"
    /// A refresh token was used twice: an attacker may have a copy.
    case reuseFound = "session.reuse-found"
    case retirementSet = "release.retirement-set"
    case retirementUndone = "release.retirement-undone"
    case stageReached = "release.stage-reached"
    case keyRotated = "key.rotated"
    /// An account caused more events than its share. `count` is the number of events that were withheld.
    case eventsWithheld = "account.events-withheld"
    /// Many logins of an account failed. `count` is the number of logins since the last such event.
    case accountGuessed = "account.guessed"
    /// Sent by `countersign webhook test` alone.
    case test = "webhook.test"

    package var meaning: String {
        switch self {
        case .accountRegistered: "a user signed up"
        case .accountLocked: "an administrator locked an account"
        case .accountUnlocked: "an administrator unlocked it"
        case .accountRemoved: "an account was removed; an erasure tells nothing"
        case .passwordChanged: "an account has a new password"
        case .resetRequested: "a reset code was made; the code is not told"
        case .accountVerified: "an account was verified, by a code or by an administrator"
        case .sessionStarted: "a user signed in"
        case .deviceAdded: "a user signed in on a device that the account did not know"
        case .sessionEnded: "a session ended; `reason` says why"
        case .reuseFound: "a refresh was used twice, and its session ended"
        case .retirementSet: "a release will be retired"
        case .retirementUndone: "it will not"
        case .stageReached: "a release reached a stage of its retirement"
        case .keyRotated: "a key was replaced; `key` says which"
        case .eventsWithheld: "an account caused more events than its share; `count` of them were withheld"
        case .accountGuessed:
            "`count` logins of an account failed since the last such event; at most one event an hour"
        case .test: "sent by `webhook test`"
        }
    }

    /// The types of events that an account's owner can cause. Beyond a bound, they are withheld.
    static let ofOwners: Set<WebhookEventType> = [
        .accountRegistered, .accountVerified, .passwordChanged, .resetRequested, .reuseFound, .sessionStarted,
        .deviceAdded, .sessionEnded,
    ]

    /// The type that a change of the audit log is told as; nil for those that no endpoint is told of.
    init?(_ action: AuditAction) {
        switch action {
        case .accountRegister: self = .accountRegistered
        case .accountLock: self = .accountLocked
        case .accountUnlock: self = .accountUnlocked
        case .accountRemove: self = .accountRemoved
        case .accountPassword: self = .passwordChanged
        case .accountReset: self = .resetRequested
        case .accountVerify: self = .accountVerified
        case .sessionReuse: self = .reuseFound
        case .releaseRetire: self = .retirementSet
        case .releaseUndo: self = .retirementUndone
        case .nextKeyPromote, .answerKeyRotate, .assertionKeysRotate, .registrationKeyRotate:
            self = .keyRotated
        default: return nil
        }
    }
}

/// Which events are delivered first, and which may be withheld.
package enum WebhookUrgency: Int64, Sendable {
    /// Actions of administrators, and events about the deployment. Never withheld.
    case administrative = 0
    /// Events about an account's security, caused by its owner or an attacker.
    case security = 1
    case routine = 2
}

/// What happened, as endpoints are told: names and ids, never a secret or a code.
package struct WebhookNotice: Sendable {
    package var type: WebhookEventType
    /// Whole Unix seconds.
    package var time: Int64
    /// Nil for what concerns the deployment.
    package var app: AppName?
    package var account: AccountName?
    package var session: SessionID?
    package var release: KeyID?
    /// Further members of the payload: why a session ended, which key was replaced.
    package var details: [(name: String, value: JSONValue)] = []

    package init(_ type: WebhookEventType, at time: Int64, app: AppName? = nil) {
        (self.type, self.time, self.app) = (type, time, app)
    }

    /// The same for a change of the audit log; nil if no endpoint is told of such changes.
    init?(_ entry: AuditEntry, at time: Int64) {
        guard var type = WebhookEventType(entry.action) else { return nil }
        // An administrator makes a code; the account's owner uses it.
        if entry.action == .accountReset, case .account = entry.actor { type = .passwordChanged }
        // That an administrator takes it back is told to no endpoint.
        if type == .accountVerified, !entry.details.contains(where: { $0 == ("verified", true) }) {
            return nil
        }
        self.init(type, at: time)
        switch entry.subject {
        case .deployment: break
        case .app(let app): self.app = app
        case .release(let id, let app): (self.app, release) = (app, id)
        case .account(let name, let app): (self.app, account) = (app, name)
        case .session(let id, let app): (self.app, session) = (app, id)
        }
        if type == .keyRotated {
            let names: [AuditAction: String] = [
                .nextKeyPromote: "release", .answerKeyRotate: "answer", .assertionKeysRotate: "assertion",
                .registrationKeyRotate: "registration",
            ]
            details = [("key", .string(names[entry.action] ?? ""))]
        }
        if type == .retirementSet {
            details = entry.details.filter { ["at", "warn_at", "read_only_at"].contains($0.name) }
        }
    }

    package var urgency: WebhookUrgency {
        switch type {
        case .accountLocked, .accountUnlocked, .accountRemoved, .retirementSet, .retirementUndone,
            .stageReached, .keyRotated, .test:
            .administrative
        case .passwordChanged, .resetRequested, .reuseFound, .eventsWithheld, .accountGuessed: .security
        case .sessionEnded: urgencyOfEnd
        case .accountRegistered, .accountVerified, .sessionStarted, .deviceAdded: .routine
        }
    }

    private var urgencyOfEnd: WebhookUrgency {
        let reason = details.first { $0.name == "reason" }?.value
        return switch reason {
        case .string("disabled"): .administrative
        case .string("revoked"), .string("reused"), .string("password-changed"): .security
        default: .routine
        }
    }

    /// The payload. `id` names the event in every delivery of it.
    package func body(id: String) -> [UInt8] {
        var members: [(name: String, value: JSONValue)] = [
            ("id", .string(id)), ("type", .string(type.rawValue)), ("time", .integer(time)),
        ]
        if let app { members.append(("app", .string(app.description))) }
        if let account { members.append(("account", .string("name:\(account)"))) }
        if let session { members.append(("session", .string(session.description))) }
        if let release { members.append(("release", .string(release.description))) }
        return JSONValue.object(members + details).bytes
    }

    /// `evt_` and 32 hexadecimal digits.
    package static func makeID() -> String { "evt_" + Hex.encode(SystemRandom().bytes(16).span) }
}
