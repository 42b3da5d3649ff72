import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSQL
import CountersignWire
import Synchronization

extension FailingStore {
    func applyTogether(_ changes: [(any Store) throws(OperationalError) -> Void]) throws(OperationalError)
        -> [OperationalError?]
    {
        let base = try base
        gate.pass(changes.count)
        return try base.applyTogether(changes)
    }

    func account(_ name: AccountName, of app: AppName) throws(OperationalError) -> Account? {
        let account = try base.account(name, of: app)
        nameLookups.withLock { $0.append(account != nil) }
        return account
    }
    func account(_ number: Int64) throws(OperationalError) -> Account? {
        let base = try base
        let due = meanwhile.withLock { (action) -> (@Sendable () -> Void)? in
            defer { action = nil }
            return action
        }
        due?()
        return try base.account(number)
    }
    func accounts(of app: AppName, after number: Int64, limit: Int) throws(OperationalError) -> [Account] {
        try base.accounts(of: app, after: number, limit: limit)
    }
    func insert(_ account: AccountDraft, recording draft: AuditDraft) throws(OperationalError)
        -> AccountInsertOutcome
    {
        try base.insert(account, recording: draft)
    }
    func insert(_ accounts: [AccountDraft], recording draft: AuditDraft) throws(OperationalError) -> [Int:
        AccountConflict]
    {
        try base.insert(accounts, recording: draft)
    }
    func change(
        _ number: Int64, if expected: AccountPrecondition, applying change: AccountChange, at now: Int64,
        recording draft: AuditDraft
    ) throws(OperationalError) -> AccountChangeOutcome {
        try base.change(number, if: expected, applying: change, at: now, recording: draft)
    }
    func knownDevice(_ id: [UInt8], of account: Int64) throws(OperationalError) -> KnownDevice? {
        try base.knownDevice(id, of: account)
    }

    func knownDevices(of account: Int64) throws(OperationalError) -> [KnownDeviceEntry] {
        try base.knownDevices(of: account)
    }
    func forgetDevice(
        _ id: [UInt8], of account: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> Bool {
        try base.forgetDevice(id, of: account, recording: draft)
    }
    func revoke(
        _ id: SessionID, of account: Int64?, device: RevokedDevice, with end: SessionTermination,
        recording draft: AuditDraft
    ) throws(OperationalError) -> SessionRevocation {
        try base.revoke(id, of: account, device: device, with: end, recording: draft)
    }
    func account(of pseudonym: AccountPseudonym) throws(OperationalError) -> Account? {
        try base.account(of: pseudonym)
    }
    func idempotentRequests(of account: Int64) throws(OperationalError) -> [HeldRequest] {
        try base.idempotentRequests(of: account)
    }
    func uploadTickets(of account: Int64) throws(OperationalError) -> [UploadTicketRecord] {
        try base.uploadTickets(of: account)
    }
    func erase(
        _ account: Account, leaving tombstones: AccountTombstones, at now: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> AccountChangeOutcome {
        try base.erase(account, leaving: tombstones, at: now, recording: draft)
    }
    func hasTombstones() throws(OperationalError) -> Bool { try base.hasTombstones() }
    func hasTombstone(_ tombstone: AccountTombstone, of app: AppName) throws(OperationalError) -> Bool {
        try base.hasTombstone(tombstone, of: app)
    }
    func scrub(_ texts: [[UInt8]], rewriting: RewriteBound) throws(OperationalError) -> ScrubOutcome {
        try base.scrub(texts, rewriting: rewriting)
    }

    func open(
        _ session: StoredSession, proving credential: [UInt8]?, slots: SlotRule, at now: Int64
    ) throws(OperationalError) -> SessionOpenOutcome {
        try base.open(session, proving: credential, slots: slots, at: now)
    }
    func session(_ id: SessionID) throws(OperationalError) -> StoredSession? { try base.session(id) }
    func sessions(of account: Int64) throws(OperationalError) -> [StoredSession] {
        try base.sessions(of: account)
    }
    func liveSessions(of account: Int64, newest limit: Int) throws(OperationalError) -> [StoredSession] {
        try base.liveSessions(of: account, newest: limit)
    }
    func liveSessions(of app: AppName, usedSince time: Int64) throws(OperationalError) -> [LiveSessionCount] {
        try base.liveSessions(of: app, usedSince: time)
    }
    func sessions(of app: AppName, limit: Int) throws(OperationalError) -> [StoredSession] {
        try base.sessions(of: app, limit: limit)
    }
    func swap(
        _ id: SessionID, from old: StoredSession.Credentials, to next: StoredSession.Credentials,
        by release: KeyID?,
        at now: Int64
    ) throws(OperationalError) -> SessionSwapOutcome {
        try base.swap(id, from: old, to: next, by: release, at: now)
    }
    func end(
        _ which: SessionSelection, with end: SessionTermination, recording draft: AuditDraft?
    ) throws(OperationalError) -> [SessionID] {
        try base.end(which, with: end, recording: draft)
    }
    func sessionChange() throws(OperationalError) -> Int64 { try base.sessionChange() }
    func sessions(changedAfter change: Int64, limit: Int) throws(OperationalError) -> [StoredSession] {
        try base.sessions(changedAfter: change, limit: limit)
    }
    func outlines(changedAfter change: Int64, limit: Int) throws(OperationalError) -> [SessionOutline] {
        try base.outlines(changedAfter: change, limit: limit)
    }
    func forgetSessions(endedBefore time: TrustedTime, limit: Int) throws(OperationalError) -> [SessionID] {
        try base.forgetSessions(endedBefore: time, limit: limit)
    }
    func forgetSessions(
        of app: AppName, usedBefore idle: TrustedTime, createdBefore age: TrustedTime?, limit: Int
    ) throws(OperationalError) -> [SessionID] {
        try base.forgetSessions(of: app, usedBefore: idle, createdBefore: age, limit: limit)
    }

    func begin(_ request: IdempotentRequest, within bounds: IdempotencyBounds) throws(OperationalError)
        -> IdempotencyState
    {
        try base.begin(request, within: bounds)
    }
    func finish(
        _ request: IdempotentRequest, with answer: StoredAnswer, within bounds: IdempotencyBounds
    ) throws(OperationalError) {
        try base.finish(request, with: answer, within: bounds)
    }
    func abandon(_ request: IdempotentRequest) throws(OperationalError) { try base.abandon(request) }
    func adopt(_ requests: [HeldRequest]) throws(OperationalError) { try base.adopt(requests) }
    func forgetRequests(before time: TrustedTime, limit: Int) throws(OperationalError) -> Int {
        try base.forgetRequests(before: time, limit: limit)
    }
}
