import CountersignGate
import CountersignSchemes
import CountersignWire

/// The store that decides about apps, releases and keys, accounts and sessions. Secrets reach it sealed.
///
/// Every change is durable when its call returns. A change of apps, releases and keys increments the
/// store's revision in the same transaction; accounts and sessions do not change it, and sessions have a
/// counter of their own.
package protocol Store: MetaStore, ReleaseStore, MeterStore, AuditStore, AccountStore, SessionStore,
    IdempotencyTable, UploadTicketStore, ErasureStore, RowAuthenticationStore, ListingStore, SealStore,
    NodeStore, SchemaStore, WebhookStore, AccountCodeStore, HistoryStore
{
    /// Creates the store, or migrates it to this build's level. Before that, a store that does not exist
    /// is read as empty, and nothing is written.
    func prepare() throws(OperationalError)

    /// Releases the store's resources. A later call opens the store again.
    func close()

    /// Everything that the gate needs, read at one moment.
    func snapshot() throws(OperationalError) -> StoreSnapshot

    /// The number of committed changes to apps, releases and keys, by any process.
    func revision() throws(OperationalError) -> Int64

    /// Applies each change by itself, in order, and makes all of them durable together before it returns,
    /// so that one disk sync serves all. A change receives this store within the transaction, valid until
    /// the change returns. A change that throws is rolled back, and its error is at its index in the
    /// result; the others are kept. Throws if they cannot be made durable; then none of them is applied.
    func applyTogether(_ changes: [(any Store) throws(OperationalError) -> Void]) throws(OperationalError)
        -> [OperationalError?]
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

/// The stored apps and releases. The transaction of a change also records it in the audit log.
package protocol ReleaseStore: Sendable {
    /// By name.
    func apps() throws(OperationalError) -> [App]
    func app(_ name: AppName) throws(OperationalError) -> App?
    func insert(_ app: App, recording draft: AuditDraft) throws(OperationalError) -> InsertOutcome

    /// Sets settings of an app, or removes them with nil: all of them or none.
    func change(
        _ app: AppName, applying changes: [(name: String, setting: StoredSetting?)],
        recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome

    /// By app, platform, and the order in which they were added; of all apps if `app` is nil.
    func releases(of app: AppName?) throws(OperationalError) -> [Release]
    func release(_ id: KeyID) throws(OperationalError) -> Release?
    func insert(_ release: Release, recording draft: AuditDraft) throws(OperationalError) -> InsertOutcome
    /// Replaces the release's retirement, if it has one.
    func retire(
        _ id: KeyID, with retirement: AppRelease.Retirement, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome
    /// `missing` if it has no retirement.
    func undoRetirement(of id: KeyID, recording draft: AuditDraft) throws(OperationalError) -> ChangeOutcome

    /// Sets settings of a release, or removes them with nil: all of them or none.
    func change(
        _ release: KeyID, applying changes: [(name: String, text: String?)], recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome

    /// Adds a next key to a release. The outcome is `taken` if the release has one, or does not exist. The
    /// meter's counts of an earlier next key are added to the current one's.
    func insertNext(
        _ sealedNextSecret: [UInt8], of release: KeyID, recording draft: AuditDraft
    ) throws(OperationalError) -> InsertOutcome
    /// Replaces the current key by `sealedSecret` and removes the next one, if the next one is still
    /// `sealedNextSecret`; this ensures that the key that was sealed again is the one that is replaced.
    func promote(
        _ sealedNextSecret: [UInt8], as sealedSecret: [UInt8], of release: KeyID, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome
    /// Removes the next key; `missing` if there is none.
    func removeNext(of release: KeyID, recording draft: AuditDraft) throws(OperationalError) -> ChangeOutcome
}

/// Values of the deployment itself.
package protocol MetaStore: Sendable {
    func value(of name: MetaName) throws(OperationalError) -> [UInt8]?
    func set(_ name: MetaName, to value: [UInt8]) throws(OperationalError)
    /// The same, with an audit record.
    func set(_ name: MetaName, to value: [UInt8], recording draft: AuditDraft) throws(OperationalError)
    /// Sets the value if it is absent or `old`, and the others with it; returns the current value.
    func exchange(
        _ name: MetaName, from old: [UInt8]?, to new: [UInt8], with others: [(name: MetaName, value: [UInt8])]
    ) throws(OperationalError) -> [UInt8]
    /// Sets the value and records that, if it still is `old`; otherwise `missing`, and nothing changes.
    func exchange(
        _ name: MetaName, from old: [UInt8], to new: [UInt8], recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome
    /// Sets the value unless there is one; returns the current value. Concurrent callers get the same
    /// result.
    func setIfAbsent(_ name: MetaName, to value: [UInt8]) throws(OperationalError) -> [UInt8]
    func remove(_ name: MetaName) throws(OperationalError)
}

package enum MetaName: String, Sendable, CaseIterable {
    /// A fixed text and the audit log's key, sealed under the master key, by which a wrong key is detected.
    case masterKeyCheck = "master-key-check"
    /// The same under the next master key, while the master key is replaced.
    case masterKeyNextCheck = "master-key-next-check"
    /// The first byte of values that the store accepts (``SealSlot``).
    case sealSlot = "seal-slot"
    /// The authenticated head of the audit log.
    case auditHead = "audit-head"
    /// The replay file that belongs to this store, so that its loss is detected.
    case replayFile = "replay-file"
    /// The epoch of the replay guard on Redis (``ReplayEpoch``).
    case replayEpoch = "replay-epoch"
    /// The settings that all nodes have in common (``SharedSettingsRecord``).
    case sharedSettings = "shared-settings"
    /// The operator's last confirmation of the clock and the creation times refused since: JSON.
    case replayConfirmation = "replay-confirmation"
    /// The seeds of the Ed25519 keys that sign answers, each sealed under the master key.
    case answerKey = "answer-key"
    /// The seeds of the Ed25519 keys that sign assertions to backends, each sealed under the master key.
    case assertionKeys = "assertion-keys"
    /// OPAQUE's seed and key pair, sealed under the master key.
    case opaqueKeys = "opaque-keys"
    /// The X25519 keys that registrations are encrypted to, each sealed under the master key.
    case registrationKey = "registration-key"
    /// The key that tokens of bearer sessions are derived with, sealed under the master key.
    case bearerKey = "bearer-key"
    /// The key of the tombstones of erased names, sealed under the master key.
    case tombstoneKey = "tombstone-key"
    /// The signed pin manifests, by app.
    case pinManifests = "pin-manifests"
    /// The endpoints of webhooks: JSON.
    case webhooks
    /// The seeds of the Ed25519 keys that sign deliveries, each sealed under the master key.
    case webhookKeys = "webhook-keys"
    /// Up to when endpoints were told of stages of retirements: whole Unix seconds, in decimal.
    case webhookStages = "webhook-stages"
    /// When the counting of requests began: whole Unix seconds, in decimal.
    case meterBegan = "meter-began"
    /// When a server last tested whether the store accepts changes: whole Unix seconds, in decimal.
    case writeCheck = "write-check"
    /// When an operator last accepted the rows as they were: whole Unix seconds, in decimal.
    case rowsAccepted = "rows-accepted"
    /// The last restoration in place, sealed under a key of the rows, with the time that the summary has.
    case restoredInPlace = "restored-in-place"
    /// The head that a node had followed when it found the store behind, sealed under a key of the rows.
    case reportedHead = "reported-head"
    /// The store that all of this was moved to, and when: its address, and whole Unix seconds. No program
    /// goes on with the one that has it.
    case movedTo = "moved-to"
    /// The store that all of this was moved from, and when, in the same form.
    case movedFrom = "moved-from"
}

package enum InsertOutcome: Sendable, Equatable {
    case yes
    /// A row of that identity exists and stays unchanged.
    case taken
}

package enum ChangeOutcome: Sendable, Equatable {
    case yes
    case missing
}
