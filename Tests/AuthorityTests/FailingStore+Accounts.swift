import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSQLite
import CountersignWire

extension FailingStore {
    func together(_ changes: [(any Store) throws(Fault) -> Void]) throws(Fault) -> [Fault?] {
        try check()
        gate.pass(changes.count)
        return try base.together(changes)
    }

    func account(_ name: AccountName, of app: AppName) throws(Fault) -> Account? {
        try check()
        return try base.account(name, of: app)
    }
    func account(_ number: Int64) throws(Fault) -> Account? { try check(); return try base.account(number) }
    func accounts(of app: AppName, after number: Int64, limit: Int) throws(Fault) -> [Account] {
        try check()
        return try base.accounts(of: app, after: number, limit: limit)
    }
    func insert(_ account: AccountDraft, recording draft: AuditDraft) throws(Fault) -> AccountInserted {
        try check()
        return try base.insert(account, recording: draft)
    }
    func insert(_ accounts: [AccountDraft], recording draft: AuditDraft) throws(Fault) -> [Int: AccountConflict] {
        try check()
        return try base.insert(accounts, recording: draft)
    }
    func change(
        _ number: Int64, if expected: AccountExpectation, _ change: AccountChange, at now: Int64,
        recording draft: AuditDraft
    ) throws(Fault) -> AccountChanged {
        try check()
        return try base.change(number, if: expected, change, at: now, recording: draft)
    }
    func knownDevice(_ id: [UInt8], of account: Int64) throws(Fault) -> KnownDevice? {
        try check()
        return try base.knownDevice(id, of: account)
    }

    func open(
        _ session: StoredSession, proving credential: [UInt8]?, slots: SlotRule, at now: Int64
    ) throws(Fault) -> SessionOpened {
        try check()
        return try base.open(session, proving: credential, slots: slots, at: now)
    }
    func session(_ id: SessionID) throws(Fault) -> StoredSession? { try check(); return try base.session(id) }
    func sessions(of account: Int64) throws(Fault) -> [StoredSession] {
        try check()
        return try base.sessions(of: account)
    }
    func liveSessions(of account: Int64, newest limit: Int) throws(Fault) -> [StoredSession] {
        try check()
        return try base.liveSessions(of: account, newest: limit)
    }
    func liveSessions(of app: AppName) throws(Fault) -> [LiveSessionCount] {
        try check()
        return try base.liveSessions(of: app)
    }
    func sessions(of app: AppName, limit: Int) throws(Fault) -> [StoredSession] {
        try check()
        return try base.sessions(of: app, limit: limit)
    }
    func swap(
        _ id: SessionID, _ old: StoredSession.Credentials, for next: StoredSession.Credentials, by release: KeyID?,
        at now: Int64
    ) throws(Fault) -> SessionSwapped {
        try check()
        return try base.swap(id, old, for: next, by: release, at: now)
    }
    func end(
        _ which: SessionSelection, _ end: SessionEnd, recording draft: AuditDraft?
    ) throws(Fault) -> [SessionID] {
        try check()
        return try base.end(which, end, recording: draft)
    }
    func sessionChange() throws(Fault) -> Int64 { try check(); return try base.sessionChange() }
    func sessions(changedAfter change: Int64, limit: Int) throws(Fault) -> [StoredSession] {
        try check()
        return try base.sessions(changedAfter: change, limit: limit)
    }
    func forgetSessions(endedBefore time: Int64, limit: Int) throws(Fault) -> [SessionID] {
        try check()
        return try base.forgetSessions(endedBefore: time, limit: limit)
    }
    func expireSessions(
        of app: AppName, usedBefore time: Int64, limit: Int, at now: Int64
    ) throws(Fault) -> [SessionID] {
        try check()
        return try base.expireSessions(of: app, usedBefore: time, limit: limit, at: now)
    }

    func begin(_ request: IdempotentRequest) throws(Fault) -> IdempotencyState {
        try check()
        return try base.begin(request)
    }
    func finish(_ request: IdempotentRequest, _ answer: StoredAnswer) throws(Fault) {
        try check()
        try base.finish(request, answer)
    }
    func abandon(_ request: IdempotentRequest) throws(Fault) { try check(); try base.abandon(request) }
    func forgetRequests(before time: Int64, limit: Int) throws(Fault) -> Int {
        try check()
        return try base.forgetRequests(before: time, limit: limit)
    }
}
