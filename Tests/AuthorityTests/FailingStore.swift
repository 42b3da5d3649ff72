import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignWire
import Glibc
import Synchronization

/// A store that can be made to fail.
final class FailingStore: Store {
    private let store: any Store
    let gate = TransactionGate()
    private let failing = Atomic(false)
    /// Called once, immediately before the next account is read, to simulate a concurrent change.
    let meanwhile = Mutex<(@Sendable () -> Void)?>(nil)

    /// The look-ups of accounts by name, in order: whether each found one.
    let nameLookups = Mutex<[Bool]>([])

    /// The threads that read all apps and releases, in order.
    let snapshots = Mutex<[UInt]>([])

    init(_ store: any Store) { self.store = store }

    var fails: Bool {
        get { failing.load(ordering: .relaxed) }
        set { failing.store(newValue, ordering: .relaxed) }
    }

    /// Throws while the store fails.
    var base: any Store {
        get throws(OperationalError) {
            if fails { throw OperationalError(.unreachable, message: "the disk is gone") }
            return store
        }
    }

    func prepare() throws(OperationalError) { try base.prepare() }
    func prepare(
        consenting consent: MigrationConsent, verifyingBy rows: RowAuthenticator?
    ) throws(OperationalError) -> SchemaOutcome {
        try base.prepare(consenting: consent, verifyingBy: rows)
    }
    func schemaPlan() throws(OperationalError) -> SchemaPlan { try base.schemaPlan() }
    func close() { store.close() }
    func authenticate(by rows: RowAuthenticator) throws(OperationalError) { try base.authenticate(by: rows) }
    func isEmpty() throws(OperationalError) -> Bool { try base.isEmpty() }
    func begin(
        with values: [(name: MetaName, value: [UInt8])], authenticatedBy rows: RowAuthenticator
    ) throws(OperationalError) { try base.begin(with: values, authenticatedBy: rows) }
    func tagAllRows() throws(OperationalError) -> Int64 { try base.tagAllRows() }
    func deleteUnverified(groups: [Int: Set<Int>]) throws(OperationalError) -> Int64 {
        try base.deleteUnverified(groups: groups)
    }
    func verifyNames() throws(OperationalError) { try base.verifyNames() }
    func verifyRows() throws(OperationalError) -> RowVerification { try base.verifyRows() }
    func verifyGroup(ofAccount number: Int64, in tables: [AuthenticatedTable]) throws(OperationalError) {
        try base.verifyGroup(ofAccount: number, in: tables)
    }
    func countRows() throws(OperationalError) -> Int64 { try base.countRows() }
    func changeMark() throws(OperationalError) -> Int64 { try base.changeMark() }
    func snapshot() throws(OperationalError) -> StoreSnapshot {
        snapshots.withLock { $0.append(UInt(pthread_self())) }
        return try base.snapshot()
    }
    func clock() throws(OperationalError) -> Int64? { try base.clock() }
    func revision() throws(OperationalError) -> Int64 { try base.revision() }
    func state(askingForAuditRecord number: Int64) throws(OperationalError) -> StoreState {
        try base.state(askingForAuditRecord: number)
    }
    func report(_ head: [UInt8]) throws(OperationalError) { try base.report(head) }
    func apps() throws(OperationalError) -> [App] { try base.apps() }
    func app(_ name: AppName) throws(OperationalError) -> App? { try base.app(name) }
    func insert(_ app: App, recording draft: AuditDraft) throws(OperationalError) -> InsertOutcome {
        try base.insert(app, recording: draft)
    }
    func change(
        _ app: AppName, applying changes: [(name: String, setting: StoredSetting?)],
        recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try base.change(app, applying: changes, recording: draft)
    }
    func releases(of app: AppName?) throws(OperationalError) -> [Release] { try base.releases(of: app) }
    func release(_ id: KeyID) throws(OperationalError) -> Release? { try base.release(id) }
    func insert(_ release: Release, recording draft: AuditDraft) throws(OperationalError) -> InsertOutcome {
        try base.insert(release, recording: draft)
    }
    func retire(
        _ id: KeyID, with retirement: AppRelease.Retirement, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try base.retire(id, with: retirement, recording: draft)
    }
    func undoRetirement(of id: KeyID, recording draft: AuditDraft) throws(OperationalError) -> ChangeOutcome {
        try base.undoRetirement(of: id, recording: draft)
    }
    func value(of name: MetaName) throws(OperationalError) -> [UInt8]? { try base.value(of: name) }
    func set(_ name: MetaName, to value: [UInt8]) throws(OperationalError) { try base.set(name, to: value) }
    func setIfAbsent(_ name: MetaName, to value: [UInt8]) throws(OperationalError) -> [UInt8] {
        try base.setIfAbsent(name, to: value)
    }
    func change(
        _ release: KeyID, applying changes: [(name: String, text: String?)], recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try base.change(release, applying: changes, recording: draft)
    }
    func insertNext(_ sealed: [UInt8], of release: KeyID, recording draft: AuditDraft)
        throws(OperationalError) -> InsertOutcome
    {
        try base.insertNext(sealed, of: release, recording: draft)
    }
    func promote(
        _ next: [UInt8], as sealed: [UInt8], of release: KeyID, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try base.promote(next, as: sealed, of: release, recording: draft)
    }
    func removeNext(of release: KeyID, recording draft: AuditDraft) throws(OperationalError) -> ChangeOutcome
    {
        try base.removeNext(of: release, recording: draft)
    }
    func set(_ name: MetaName, to value: [UInt8], recording draft: AuditDraft) throws(OperationalError) {
        try base.set(name, to: value, recording: draft)
    }
    func exchange(
        _ name: MetaName, from old: [UInt8]?, to new: [UInt8], with others: [(name: MetaName, value: [UInt8])]
    ) throws(OperationalError) -> [UInt8] {
        try base.exchange(name, from: old, to: new, with: others)
    }
    func exchange(
        _ name: MetaName, from old: [UInt8], to new: [UInt8], recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try base.exchange(name, from: old, to: new, recording: draft)
    }
    func auditRows(after number: Int64, limit: Int) throws(OperationalError) -> [AuditRow] {
        try base.auditRows(after: number, limit: limit)
    }
    func auditEnd() throws(OperationalError) -> (head: [UInt8]?, last: Int64) { try base.auditEnd() }
    func add(_ entries: [MeterEntry]) throws(OperationalError) { try base.add(entries) }
    func meter(since day: Int64) throws(OperationalError) -> [MeterEntry] { try base.meter(since: day) }
    func forgetMeter(before time: TrustedTime) throws(OperationalError) { try base.forgetMeter(before: time) }
    func add(
        _ ticket: UploadTicketRecord, within bounds: UploadTicketBounds, at now: Int64
    ) throws(OperationalError) -> UploadTicketAddOutcome {
        try base.add(ticket, within: bounds, at: now)
    }
    func uploadTicket(_ id: UploadTicketID) throws(OperationalError) -> UploadTicketRecord? {
        try base.uploadTicket(id)
    }
    func claimUploadTicket(_ id: UploadTicketID, at now: Int64) throws(OperationalError) -> UploadTicketClaim
    {
        try base.claimUploadTicket(id, at: now)
    }
    func abandonUploadTicket(_ id: UploadTicketID, attempt: Int) throws(OperationalError) {
        try base.abandonUploadTicket(id, attempt: attempt)
    }
    func forgetUploadTickets(expiredBefore time: TrustedTime, limit: Int) throws(OperationalError) -> Int {
        try base.forgetUploadTickets(expiredBefore: time, limit: limit)
    }
}

extension FailingStore {
    func remove(_ name: MetaName) throws(OperationalError) { try base.remove(name) }
    func emptyLog() throws(OperationalError) { try base.emptyLog() }
    func countSealed(otherThan slot: UInt8) throws(OperationalError) -> Int64 {
        try base.countSealed(otherThan: slot)
    }
    func sealAgain(
        _ table: SealedTable, after position: Int64, limit: Int, unlessIn slot: UInt8,
        by seal: (SealedValue) -> [UInt8]?
    ) throws(OperationalError) -> SealProgress {
        try base.sealAgain(table, after: position, limit: limit, unlessIn: slot, by: seal)
    }
}
