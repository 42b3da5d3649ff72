import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The storage of what is held about one person, and its erasure.
package protocol ErasureStore: Sendable {
    /// The account that the pseudonym stands for; nil once it was erased.
    func account(of pseudonym: AccountPseudonym) throws(OperationalError) -> Account?
    /// Oldest first.
    func idempotentRequests(of account: Int64) throws(OperationalError) -> [HeldRequest]
    /// Oldest first.
    func uploadTickets(of account: Int64) throws(OperationalError) -> [UploadTicketRecord]

    /// Ends the account's sessions; removes its name, user id, pseudonym and credentials, its devices' names
    /// and keys, its upload tickets and idempotent requests; keeps the tombstone. The record is added before
    /// the pseudonym goes. `missing` if the account was erased before or has another name.
    func erase(
        _ number: Int64, named name: AccountName, leaving tombstone: AccountTombstone, at now: Int64,
        recording draft: AuditDraft
    ) throws(OperationalError) -> AccountChangeOutcome

    func hasTombstone(_ tombstone: AccountTombstone, of app: AppName) throws(OperationalError) -> Bool
    func hasTombstones() throws(OperationalError) -> Bool

    /// Removes `text` from the parts of the store's files that no row uses any more; returns whether the
    /// files no longer contain it. A text that rows contain stays.
    func scrub(_ text: [UInt8]) throws(OperationalError) -> Bool
}

/// An idempotent request with its stored outcome.
package struct HeldRequest: Sendable, Equatable {
    package var request: IdempotentRequest
    /// Nil while the request has no outcome.
    package var answer: StoredAnswer?

    package init(_ request: IdempotentRequest, answer: StoredAnswer?) {
        self.request = request
        self.answer = answer
    }
}

/// Everything that the store holds about one account.
package struct AccountHoldings: Sendable {
    package var account: Account
    package var sessions: [StoredSession]
    package var devices: [KnownDeviceEntry]
    package var requests: [HeldRequest]
    package var tickets: [UploadTicketRecord]
    /// The records of the audit log that name the account or one of its sessions, oldest first.
    package var records: [AuditRow]
}

package struct AccountErasure: Sendable, Equatable {
    package var ended: [SessionID]
    /// Whether the store's files no longer contain the bytes of the name. Rows that are not the account's, as
    /// of another app's account of that name, may.
    package var isAbsent: Bool
}

extension Deployment {
    package func holdings(of name: AccountName, in app: AppName) throws(OperationalError) -> AccountHoldings {
        let account = try account(name, of: app)
        var holdings = AccountHoldings(
            account: account, sessions: try store.sessions(of: account.number),
            devices: try store.knownDevices(of: account.number),
            requests: try store.idempotentRequests(of: account.number),
            tickets: try store.uploadTickets(of: account.number), records: [])
        let sessions = Set(holdings.sessions.map(\.id.description))
        try forEachAuditRow { (row) throws(OperationalError) in
            if AuditMention(row).isOf(account, sessions: sessions) { holdings.records.append(row) }
        }
        return holdings
    }

    /// Removes the account's name everywhere but in logs, permanently. The name stays reserved by a keyed
    /// tombstone. Fails, and changes nothing, if the audit log still has names and cannot be rewritten. For a
    /// name that was erased before, it only looks through the files again.
    package func eraseAccount(
        _ name: AccountName, of app: AppName, at now: Int64
    ) throws(OperationalError) -> AccountErasure {
        if try store.account(name, of: app) == nil,
            try store.hasTombstone(tombstone(of: name, in: app), of: app)
        {
            return AccountErasure(ended: [], isAbsent: try store.scrub(name.bytes))
        }
        let account = try account(name, of: app)
        guard !account.isErased else {
            throw OperationalError(.failed, message: "account \(name): was erased; that is for good")
        }
        try rewriteAudit()
        let outcome = try store.erase(
            account.number, named: name, leaving: tombstone(of: name, in: app), at: now,
            recording: auditDraft(for: .accountErase, on: .account(name, of: app)))
        guard case .yes(let ended) = outcome else {
            throw OperationalError(.failed, message: "account \(name): was erased meanwhile")
        }
        generation.advance()
        return AccountErasure(ended: ended, isAbsent: try store.scrub(name.bytes))
    }

    /// For ``AccountDraft``.
    func tombstone(
        of name: AccountName, in app: AppName
    ) throws(OperationalError) -> AccountTombstone {
        try tombstoneKey().tombstone(of: name, in: app)
    }

    func forEachAuditRow(
        _ body: (AuditRow) throws(OperationalError) -> Void
    ) throws(OperationalError) {
        var after: Int64 = 0
        while true {
            let rows = try store.auditRows(after: after, limit: 1_000)
            for row in rows { try body(row) }
            guard let last = rows.last, rows.count == 1_000 else { return }
            after = last.number
        }
    }
}

/// Whom an audit record names.
private struct AuditMention {
    private let document: JSONDocument?

    init(_ row: AuditRow) { document = row.document }

    func isOf(_ account: Account, sessions: Set<String>) -> Bool {
        guard let document else { return false }
        let root = document.root
        if let pseudonym = account.pseudonym?.description {
            if root["pseudonym"]?.string == pseudonym { return true }
            if root["actor"]?["pseudonym"]?.string == pseudonym { return true }
        }
        if let session = root["session"]?.string, sessions.contains(session) { return true }
        guard let number = root["details"]?["account"] else { return false }
        return document.integer(number, in: 0...Int.max).map(Int64.init) == account.number
    }
}
