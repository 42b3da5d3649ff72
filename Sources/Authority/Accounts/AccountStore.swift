import CountersignHandshake
import CountersignSeal
import CountersignWire

/// The stored accounts. Secrets reach the store sealed or hashed. The transaction of a change also records
/// it in the audit log and ends the sessions that it ends.
package protocol AccountStore: Sendable {
    func account(_ name: AccountName, of app: AppName) throws(OperationalError) -> Account?
    func account(_ number: Int64) throws(OperationalError) -> Account?
    /// By number, those above `number`, removed ones included.
    func accounts(of app: AppName, after number: Int64, limit: Int) throws(OperationalError) -> [Account]

    /// Adds the account under a new number. The outcome is `taken` if the name, also of a removed or erased
    /// account, or the user id exists.
    func insert(_ account: AccountDraft, recording draft: AuditDraft) throws(OperationalError)
        -> AccountInsertOutcome

    /// Adds many accounts at once, for imports; returns the conflicts by index and adds the others.
    func insert(_ accounts: [AccountDraft], recording draft: AuditDraft) throws(OperationalError) -> [Int:
        AccountConflict]

    /// Applies the whole change or nothing; `missing` if the account does not exist or `expected` does not
    /// hold.
    func change(
        _ number: Int64, if expected: AccountPrecondition, applying change: AccountChange, at now: Int64,
        recording draft: AuditDraft
    ) throws(OperationalError) -> AccountChangeOutcome

    /// A device that has finished a login under the account's registration, or signed it, and has not been
    /// forgotten since; nil for others.
    func knownDevice(_ id: [UInt8], of account: Int64) throws(OperationalError) -> KnownDevice?
    /// The account's known devices, the one that was seen last first.
    func knownDevices(of account: Int64) throws(OperationalError) -> [KnownDeviceEntry]
    /// False, without a record, if the account does not know the device.
    func forgetDevice(
        _ id: [UInt8], of account: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> Bool
}

package struct AccountDraft: Sendable {
    package var app: AppName
    package var name: AccountName
    package var userID: Int64?
    package var created: Int64
    package var registration: StoredRegistration?
    package var legacy: LegacyCredential?
    /// The tombstones that an erased account of the same name or user id would have. If one of them exists,
    /// the name or id is taken. Nil for drafts that cannot collide with an erased account, as in tests.
    package var tombstones: AccountTombstones?

    package init(
        app: AppName, name: AccountName, userID: Int64? = nil, created: Int64, tombstones: AccountTombstones?
    ) {
        self.tombstones = tombstones
        self.app = app
        self.name = name
        self.userID = userID
        self.created = created
    }
}

package enum AccountInsertOutcome: Sendable, Equatable {
    case yes(Account)
    case taken(AccountConflict)
}

package enum AccountConflict: Sendable, Equatable { case name, userID }

/// What must still hold in the change's transaction: it was read before, and may have changed since.
package enum AccountPrecondition: Sendable, Equatable {
    case anything
    /// The account's registration still has this credential (nil: it has no registration).
    case credential([UInt8]?)
    /// The account's legacy credential is still this one.
    case legacy(LegacyCredential)
    /// The account still has this reset code, and it has not expired.
    case reset(codeHash: [UInt8])

    /// For stores, within the change's transaction. Comparing hashes of codes need not take constant time:
    /// a sender cannot choose the hash of its code.
    package func holds(of account: Account, at now: Int64) -> Bool {
        switch self {
        case .anything: true
        case .credential(let credential): account.registration?.credential == credential
        case .legacy(let credential): account.legacy == credential
        case .reset(let hash): account.resets.contains { $0.codeHash == hash && now < $0.until }
        }
    }
}

package enum AccountChange: Sendable {
    /// Ends all sessions.
    case lock
    case unlock
    /// Ends all sessions and drops every credential; the name stays taken.
    case remove
    /// Replaces every other credential and reset code. Ends all sessions except `keeping`, and forgets the
    /// account's known devices except that session's.
    case register(StoredRegistration, keeping: SessionID?)
    /// The same by a reset code, which ends all sessions. Of the account's known devices, only the one that
    /// signed the registration stays or becomes known.
    case reset(StoredRegistration, by: KnownDeviceEntry?)
    /// Puts the account on a rung of the ladder in place of a registration. Ends all sessions and forgets
    /// all devices.
    case legacy(LegacyCredential)
    /// Replaces the password on a rung of the ladder. Ends all sessions except `keeping`, and forgets all
    /// devices.
    case legacyPassword(LegacyCredential, keeping: SessionID?)
    /// Takes the account off the ladder by a registration of the same password; its sessions continue.
    case upgrade(StoredRegistration)
    /// Adds a reset code beside the others, as ``CodePace`` allows.
    case addReset(StoredReset)
    /// Replaces all reset codes with this one. ``CodePace`` does not apply.
    case replaceResets(StoredReset)
    /// Replaces the backend's user id, or clears it. Ends all sessions: a client that stays signed in would
    /// state the former id. The former id stays reserved for this account; nil for accounts whose ids cannot
    /// collide with former ones, as in tests.
    case setUserID(Int64?, reserving: UserIDTombstones?)
}

package enum AccountChangeOutcome: Sendable, Equatable {
    /// With the sessions that the change ended.
    case yes(ended: [SessionID])
    case missing
    /// Another account of the app has or had the user id.
    case taken
    /// No reset code can be made now.
    case refused(CodePace.Refusal)
}

extension AccountInsertOutcome: StoreOutcome {
    package var didChange: Bool { if case .yes = self { true } else { false } }
}

extension AccountChangeOutcome: StoreOutcome {
    package var didChange: Bool { if case .yes = self { true } else { false } }
}

package struct KnownDevice: Sendable, Equatable {
    /// The number of known devices of an account; the newest are kept.
    package static let mostOfAccount = 20

    /// SHA-256 of the signing key.
    package var id: [UInt8]
    /// The signing key: 65 bytes on P-256.
    package var signingKey: [UInt8]
    /// Whole Unix seconds of the device's last login.
    package var lastSeen: Int64

    package init(id: [UInt8], signingKey: [UInt8], lastSeen: Int64) {
        self.id = id
        self.signingKey = signingKey
        self.lastSeen = lastSeen
    }

    /// `signingKey` is 65 bytes on P-256.
    package init(signingKey: [UInt8], lastSeen: Int64) {
        let digest = SHA256.digest(signingKey.span)
        self.init(id: digest.indices.map { digest[$0] }, signingKey: signingKey, lastSeen: lastSeen)
    }
}

/// A known device with what people recognise it by.
package struct KnownDeviceEntry: Sendable, Equatable {
    package var device: KnownDevice
    package var kind: Device.Class
    package var name: String
    /// Whole Unix seconds.
    package var firstSeen: Int64

    package init(device: KnownDevice, kind: Device.Class, name: String, firstSeen: Int64) {
        self.device = device
        self.kind = kind
        self.name = name
        self.firstSeen = firstSeen
    }
}
