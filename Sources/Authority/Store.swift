import CountersignGate
import CountersignSchemes
import CountersignWire

/// What the authority asks of a store: the truth about apps, releases and keys, accounts and sessions. Secrets reach it
/// sealed.
///
/// Every change is durable when its call returns. One of apps, releases and keys counts the store's revision up by one, in
/// the same transaction; accounts and sessions leave it as it is, and sessions have a count of their own.
package protocol Store: MetaStore, ReleaseStore, MeterStore, AuditStore, AccountStore, SessionStore, IdempotencyStore,
    UploadTicketStore
{
    /// Makes the store, or brings it up to this build's layout. Until then, a store that was never made is read as an
    /// empty one, and nothing is written.
    func prepare() throws(Fault)

    /// Gives back what the machine lent. A later call opens the store again.
    func close()

    /// Everything that requests need, as of one moment.
    func snapshot() throws(Fault) -> StoreSnapshot

    /// Goes up with each change, whoever makes it.
    func revision() throws(Fault) -> Int64

    /// Makes each change by itself, in order, and all of them durable together before it returns: a disk's delay is paid once.
    /// What a change is handed is this store, within the transaction, and good until the change returns. One that
    /// throws leaves nothing behind, and its fault is in its place in the answer; the others stand. Throws where they cannot
    /// be made durable: then there is nothing of any of them.
    func together(_ changes: [(any Store) throws(Fault) -> Void]) throws(Fault) -> [Fault?]
}

package struct StoreSnapshot: Sendable, Equatable {
    package var revision: Int64
    package var apps: [App]
    package var releases: [Release]

    package init(revision: Int64, apps: [App], releases: [Release]) {
        self.revision = revision
        self.apps = apps
        self.releases = releases
    }
}

/// Apps and their releases. A change that comes about is recorded in the audit log, in the same transaction.
package protocol ReleaseStore: Sendable {
    /// By name.
    func apps() throws(Fault) -> [App]
    func app(_ name: AppName) throws(Fault) -> App?
    func insert(_ app: App, recording draft: AuditDraft) throws(Fault) -> Inserted

    /// Sets, or with nil removes, settings of an app: all of them or none.
    func change(
        _ app: AppName, _ changes: [(name: String, setting: StoredSetting?)], recording draft: AuditDraft
    ) throws(Fault) -> Changed

    /// By app, platform, and the order in which they were added; of all apps with nil.
    func releases(of app: AppName?) throws(Fault) -> [Release]
    func release(_ id: KeyID) throws(Fault) -> Release?
    func insert(_ release: Release, recording draft: AuditDraft) throws(Fault) -> Inserted
    /// In the place of a retirement that it has.
    func retire(
        _ id: KeyID, _ retirement: ReleaseKey.Retirement, recording draft: AuditDraft
    ) throws(Fault) -> Changed
    /// `missing` where it has none.
    func undoRetirement(of id: KeyID, recording draft: AuditDraft) throws(Fault) -> Changed

    /// Sets, or with nil removes, settings of a release: all of them or none.
    func change(
        _ release: KeyID, _ changes: [(name: String, text: String?)], recording draft: AuditDraft
    ) throws(Fault) -> Changed

    /// Gives a release a next key. One that it has stays: `taken`, as for a release that is not there. What the meter
    /// has of earlier next keys goes to the current one.
    func insertNext(
        _ sealedNextSecret: [UInt8], of release: KeyID, recording draft: AuditDraft
    ) throws(Fault) -> Inserted
    /// Puts `sealedSecret` in the current key's place and removes the next one, if that is still `sealedNextSecret`:
    /// what was opened and sealed again must be what is replaced.
    func promote(
        _ sealedNextSecret: [UInt8], as sealedSecret: [UInt8], of release: KeyID, recording draft: AuditDraft
    ) throws(Fault) -> Changed
    /// Removes the next key; `missing` where there is none.
    func removeNext(of release: KeyID, recording draft: AuditDraft) throws(Fault) -> Changed
}

/// What the store remembers about the deployment itself.
package protocol MetaStore: Sendable {
    func value(of name: MetaName) throws(Fault) -> [UInt8]?
    func set(_ name: MetaName, to value: [UInt8]) throws(Fault)
    /// The same, and recorded.
    func set(_ name: MetaName, to value: [UInt8], recording draft: AuditDraft) throws(Fault)
    /// Sets it if it is `old` (nil: not there), and the others with it; answers the value it has now.
    func exchange(
        _ name: MetaName, _ old: [UInt8]?, for new: [UInt8], with others: [(name: MetaName, value: [UInt8])]
    ) throws(Fault) -> [UInt8]
    /// Sets it unless it has a value; answers the value it has now. Two that race get the same answer.
    func claim(_ name: MetaName, _ value: [UInt8]) throws(Fault) -> [UInt8]
}

package enum MetaName: String, Sendable, CaseIterable {
    /// A fixed text and the audit log's key under the master key: who opens it has the right key.
    case masterKeyCheck = "master-key-check"
    /// Where the audit log ends, authenticated under its key.
    case auditHead = "audit-head"
    /// Which replay file belongs to this store, so that one that vanished is missed.
    case replayFile = "replay-file"
    /// When an administrator last confirmed the clock, and which creation times are refused since: JSON.
    case replayConfirmation = "replay-confirmation"
    /// The seed of the Ed25519 key that signs answers, under the master key.
    case answerKey = "answer-key"
    /// The seeds of the Ed25519 keys that sign assertions to backends, each under the master key.
    case assertionKeys = "assertion-keys"
    /// OPAQUE's seed and key pair, under the master key.
    case opaqueKeys = "opaque-keys"
    /// The X25519 key that registrations are sealed to, under the master key.
    case registrationKey = "registration-key"
    /// What the tokens of bearer sessions are derived under, sealed under the master key.
    case bearerKey = "bearer-key"
    /// What clients are told of pins: signed manifests, by app.
    case pinManifests = "pin-manifests"
    /// Since when requests are counted: whole Unix seconds, in decimal.
    case meterBegan = "meter-began"
    /// When a server last tried whether the store takes changes: whole Unix seconds, in decimal.
    case writeCheck = "write-check"
}

package enum Inserted: Sendable, Equatable {
    case yes
    /// One of that identity is there, and stays as it was.
    case taken
}

package enum Changed: Sendable, Equatable {
    case yes
    case missing
}
