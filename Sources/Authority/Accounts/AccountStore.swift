import CountersignSeal
import CountersignWire

/// Accounts. Secrets reach it sealed or hashed. Each change is recorded in the audit log in the same transaction; what ends
/// sessions ends them in it too.
package protocol AccountStore: Sendable {
    func account(_ name: AccountName, of app: AppName) throws(Fault) -> Account?
    func account(_ number: Int64) throws(Fault) -> Account?
    /// By number, of those behind `number`; removed ones too.
    func accounts(of app: AppName, after number: Int64, limit: Int) throws(Fault) -> [Account]

    /// Adds it under a new number. `userID` nil for an account with a legacy credential: the store chooses one more than the app's
    /// highest. Taken: by name, a removed account's included, or by user id.
    func insert(_ account: AccountDraft, recording draft: AuditDraft) throws(Fault) -> AccountInserted

    /// Many at once, for imports: those that are taken are told by their index, and the others are added.
    func insert(_ accounts: [AccountDraft], recording draft: AuditDraft) throws(Fault) -> [Int: AccountConflict]

    /// All of it or none; `missing` where the account is not there or `expected` does not hold.
    func change(
        _ number: Int64, if expected: AccountExpectation, _ change: AccountChange, at now: Int64,
        recording draft: AuditDraft
    ) throws(Fault) -> AccountChanged

    /// A device that has signed in to the account before, and has not been forgotten; nil for others.
    func knownDevice(_ id: [UInt8], of account: Int64) throws(Fault) -> KnownDevice?
}

package struct AccountDraft: Sendable {
    package var app: AppName
    package var name: AccountName
    package var userID: Int64?
    package var created: Int64
    package var registration: StoredRegistration?
    package var legacy: LegacyCredential?

    package init(app: AppName, name: AccountName, userID: Int64? = nil, created: Int64) {
        self.app = app
        self.name = name
        self.userID = userID
        self.created = created
    }
}

package enum AccountInserted: Sendable, Equatable {
    case yes(Account)
    case taken(AccountConflict)
}

package enum AccountConflict: Sendable, Equatable { case name, userID }

/// What must still be so for a change to come about: read before, and perhaps changed since.
package enum AccountExpectation: Sendable, Equatable {
    case anything
    /// Its registration is still this one, by its credential (nil: it has none).
    case credential([UInt8]?)
    /// It is still on the ladder by this.
    case legacy(LegacyCredential)
    /// This reset code is still good.
    case reset(codeHash: [UInt8])

    /// For stores, within the change's transaction. Hashes of codes are compared as they come: who sends a code does not
    /// choose its hash.
    package func holds(of account: Account, at now: Int64) -> Bool {
        switch self {
        case .anything: true
        case .credential(let credential): account.registration?.credential == credential
        case .legacy(let credential): account.legacy == credential
        case .reset(let hash): account.reset.map { $0.codeHash == hash && now < $0.until } ?? false
        }
    }
}

package enum AccountChange: Sendable {
    /// Ends all sessions.
    case lock
    case unlock
    /// Ends all sessions and drops every credential; the name stays taken.
    case remove
    /// Takes the place of every other credential and reset code. Ends all sessions but `keeping`, and forgets the devices that
    /// the account was known on but that session's.
    case register(StoredRegistration, keeping: SessionID?)
    /// Puts the account on a rung of the ladder, in place of a registration. Ends all sessions and forgets all devices.
    case legacy(LegacyCredential)
    /// Another password on a rung of the ladder. Ends all sessions but `keeping`, and forgets all devices.
    case legacyPassword(LegacyCredential, keeping: SessionID?)
    /// The account leaves the ladder by registering, and keeps its sessions: its password is the same.
    case upgrade(StoredRegistration)
    case setReset(StoredReset?)
}

package enum AccountChanged: Sendable, Equatable {
    /// And the sessions that ended with it.
    case yes(ended: [SessionID])
    case missing
}

extension AccountInserted: StoreOutcome {
    package var cameAbout: Bool { if case .yes = self { true } else { false } }
}

extension AccountChanged: StoreOutcome {
    package var cameAbout: Bool { self != .missing }
}

package struct KnownDevice: Sendable, Equatable {
    /// Devices that one account is known on; the newest are kept.
    package static let mostOfAccount = 20

    /// SHA-256 of the signing key.
    package var id: [UInt8]
    /// The signing key: 65 bytes on P-256.
    package var signingKey: [UInt8]
    /// Whole Unix seconds of its last login.
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
