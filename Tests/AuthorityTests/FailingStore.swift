import CountersignAuthority
import CountersignGate
import CountersignSQLite
import CountersignSchemes
import CountersignWire
import Synchronization

/// A store whose machine can be made to fail.
final class FailingStore: Store {
    let base: SQLiteStore
    let gate = TransactionGate()
    private let failing = Atomic(false)
    /// Done once, when the next account is read, before it is: what happens meanwhile.
    let meanwhile = Mutex<(@Sendable () -> Void)?>(nil)

    init(_ base: SQLiteStore) { self.base = base }

    var fails: Bool {
        get { failing.load(ordering: .relaxed) }
        set { failing.store(newValue, ordering: .relaxed) }
    }

    func check() throws(Fault) { if fails { throw Fault(.unreachable, "the disk is gone") } }

    func prepare() throws(Fault) { try check(); try base.prepare() }
    func close() { base.close() }
    func snapshot() throws(Fault) -> StoreSnapshot { try check(); return try base.snapshot() }
    func revision() throws(Fault) -> Int64 { try check(); return try base.revision() }
    func apps() throws(Fault) -> [App] { try check(); return try base.apps() }
    func app(_ name: AppName) throws(Fault) -> App? { try check(); return try base.app(name) }
    func insert(_ app: App, recording draft: AuditDraft) throws(Fault) -> Inserted {
        try check()
        return try base.insert(app, recording: draft)
    }
    func change(
        _ app: AppName, _ changes: [(name: String, setting: StoredSetting?)], recording draft: AuditDraft
    ) throws(Fault) -> Changed {
        try check()
        return try base.change(app, changes, recording: draft)
    }
    func releases(of app: AppName?) throws(Fault) -> [Release] { try check(); return try base.releases(of: app) }
    func release(_ id: KeyID) throws(Fault) -> Release? { try check(); return try base.release(id) }
    func insert(_ release: Release, recording draft: AuditDraft) throws(Fault) -> Inserted {
        try check()
        return try base.insert(release, recording: draft)
    }
    func retire(
        _ id: KeyID, _ retirement: ReleaseKey.Retirement, recording draft: AuditDraft
    ) throws(Fault) -> Changed {
        try check()
        return try base.retire(id, retirement, recording: draft)
    }
    func undoRetirement(of id: KeyID, recording draft: AuditDraft) throws(Fault) -> Changed {
        try check()
        return try base.undoRetirement(of: id, recording: draft)
    }
    func value(of name: MetaName) throws(Fault) -> [UInt8]? { try check(); return try base.value(of: name) }
    func set(_ name: MetaName, to value: [UInt8]) throws(Fault) { try check(); try base.set(name, to: value) }
    func claim(_ name: MetaName, _ value: [UInt8]) throws(Fault) -> [UInt8] {
        try check(); return try base.claim(name, value)
    }
    func change(
        _ release: KeyID, _ changes: [(name: String, text: String?)], recording draft: AuditDraft
    ) throws(Fault) -> Changed {
        try check()
        return try base.change(release, changes, recording: draft)
    }
    func insertNext(_ sealed: [UInt8], of release: KeyID, recording draft: AuditDraft) throws(Fault) -> Inserted {
        try check()
        return try base.insertNext(sealed, of: release, recording: draft)
    }
    func promote(
        _ next: [UInt8], as sealed: [UInt8], of release: KeyID, recording draft: AuditDraft
    ) throws(Fault) -> Changed {
        try check()
        return try base.promote(next, as: sealed, of: release, recording: draft)
    }
    func removeNext(of release: KeyID, recording draft: AuditDraft) throws(Fault) -> Changed {
        try check()
        return try base.removeNext(of: release, recording: draft)
    }
    func set(_ name: MetaName, to value: [UInt8], recording draft: AuditDraft) throws(Fault) {
        try check()
        try base.set(name, to: value, recording: draft)
    }
    func exchange(
        _ name: MetaName, _ old: [UInt8]?, for new: [UInt8], with others: [(name: MetaName, value: [UInt8])]
    ) throws(Fault) -> [UInt8] {
        try check()
        return try base.exchange(name, old, for: new, with: others)
    }
    func auditRows(after number: Int64, limit: Int) throws(Fault) -> [AuditRow] {
        try check()
        return try base.auditRows(after: number, limit: limit)
    }
    func auditEnd() throws(Fault) -> (head: [UInt8]?, last: Int64) { try check(); return try base.auditEnd() }
    func add(_ entries: [MeterEntry]) throws(Fault) { try check(); try base.add(entries) }
    func meter(since day: Int64) throws(Fault) -> [MeterEntry] { try check(); return try base.meter(since: day) }
    func forgetMeter(before day: Int64) throws(Fault) { try check(); try base.forgetMeter(before: day) }
    func add(
        _ ticket: UploadTicket, within bounds: UploadTicketBounds, at now: Int64
    ) throws(Fault) -> UploadTicketAdded {
        try check()
        return try base.add(ticket, within: bounds, at: now)
    }
    func uploadTicket(_ id: UploadTicketID) throws(Fault) -> UploadTicket? {
        try check()
        return try base.uploadTicket(id)
    }
    func claimUploadTicket(_ id: UploadTicketID, at now: Int64) throws(Fault) -> UploadTicketClaim {
        try check()
        return try base.claimUploadTicket(id, at: now)
    }
    func abandonUploadTicket(_ id: UploadTicketID, attempt: Int) throws(Fault) {
        try check()
        try base.abandonUploadTicket(id, attempt: attempt)
    }
    func forgetUploadTickets(expiredBefore time: Int64, limit: Int) throws(Fault) -> Int {
        try check()
        return try base.forgetUploadTickets(expiredBefore: time, limit: limit)
    }
}
