import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The storage of what is held about one person, and its erasure.
package protocol ErasureStore: Sendable {
    /// The account that the pseudonym stands for; nil once it was erased, and while its row is altered.
    func account(of pseudonym: AccountPseudonym) throws(OperationalError) -> Account?
    /// Oldest first.
    func idempotentRequests(of account: Int64) throws(OperationalError) -> [HeldRequest]
    /// Oldest first, without altered ones.
    func uploadTickets(of account: Int64) throws(OperationalError) -> [UploadTicketRecord]

    /// Ends the account's sessions; removes its name, user id, pseudonym and credentials, its devices' names
    /// and keys, its upload tickets and idempotent requests; keeps the tombstones, and removes those that say
    /// that this account had a former user id. Adds the audit record
    /// before it removes the pseudonym. Returns `missing` if the account is already erased, or has another
    /// name or user id.
    func erase(
        _ account: Account, leaving tombstones: AccountTombstones, at now: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> AccountChangeOutcome

    func hasTombstone(_ tombstone: AccountTombstone, of app: AppName) throws(OperationalError) -> Bool
    func hasTombstones() throws(OperationalError) -> Bool

    /// Removes each of `texts` from the parts of the store's files that no row uses any more, which may take
    /// writing the files anew. A text that rows contain stays.
    func scrub(
        _ texts: [[UInt8]], rewriting: RewriteBound
    ) throws(OperationalError) -> ScrubOutcome
}

/// Up to which size a scrub may write a store's file anew. Other writers wait meanwhile, and then fail, and
/// the copy is held in memory.
package enum RewriteBound: Sendable, Equatable {
    /// A file of so many bytes.
    case upTo(Int64)
    case always

    /// Some three seconds, of the five that writers wait.
    package static let ifSmall = RewriteBound.upTo(mostUnasked)
    package static let mostUnasked: Int64 = 256 << 20
}

package enum ScrubOutcome: Sendable, Equatable {
    /// The files no longer contain any of the texts.
    case absent
    /// Only rows do.
    case inRows
    /// Parts that no row uses do: the file is too large to be written anew unasked.
    case inUnusedParts(fileBytes: Int64)
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
    /// When the account was verified, in whole Unix seconds; nil if it was not.
    package var verified: Int64?
    /// Includes codes that are no longer valid.
    package var codes: [StoredAccountCode]
    /// The records of the audit log that name the account or one of its sessions, oldest first.
    package var records: [AuditRow]
    /// What was left out, because it is not as this program wrote it.
    package var altered: [AlteredRow]
}

package struct AccountErasure: Sendable, Equatable {
    package var ended: [SessionID]
    /// Where the store's files still contain the bytes of the name. Rows that are not the account's, as of
    /// another app's account of that name, may.
    package var files: ScrubOutcome
}

extension Deployment {
    /// Records that all data about an account was exported.
    package func recordExport(
        of name: AccountName, in app: AppName, at now: Int64
    ) throws(OperationalError) {
        // An export changes no row, but the store adds a record only together with a value.
        try store.set(
            .writeCheck, to: Array(String(now).utf8),
            recording: auditDraft(for: .accountExport, on: .account(name, of: app)))
    }

    package func holdings(of name: AccountName, in app: AppName) throws(OperationalError) -> AccountHoldings {
        let account = try account(name, of: app)
        var holdings = AccountHoldings(
            account: account, sessions: try store.sessions(of: account.number),
            devices: try store.knownDevices(of: account.number),
            requests: try store.idempotentRequests(of: account.number)
                + (requestLog()?.requests(of: account.number) ?? []),
            tickets: try store.uploadTickets(of: account.number),
            verified: try verificationTime(ofAccount: account.number),
            codes: try store.accountCodes(of: account.number), records: [],
            altered: try store.alteredRows(of: account.number))
        let sessions = Set(holdings.sessions.map(\.id.description))
        try forEachAuditRow { (row) throws(OperationalError) in
            if AuditMention(row).isOf(account, sessions: sessions) { holdings.records.append(row) }
        }
        return holdings
    }

    /// Permanently removes the account's name everywhere except in logs. Keyed tombstones keep the name and
    /// the user id reserved. For a name that was erased earlier, only searches the files again. `rewriting`
    /// decides whether a large file is rewritten if the name remains in free pages.
    package func eraseAccount(
        _ name: AccountName, of app: AppName, at now: Int64, rewriting: RewriteBound = .ifSmall
    ) throws(OperationalError) -> AccountErasure {
        if try store.account(name, of: app) == nil,
            try store.hasTombstone(tombstones(of: name, userID: nil, in: app).name, of: app)
        {
            return AccountErasure(ended: [], files: try scrub([name], rewriting: rewriting))
        }
        let ended = try eraseRows(of: name, in: app, at: now)
        return AccountErasure(ended: ended, files: try scrub([name], rewriting: rewriting))
    }

    /// Looks through the store's files once for names whose accounts were erased (``eraseRows(of:in:at:)``).
    /// The files are rewritten if that is needed.
    package func scrub(erased names: [AccountName]) throws(OperationalError) {
        if !names.isEmpty { _ = try scrub(names, rewriting: .always) }
    }

    /// Erases the account, and leaves the store's files to ``scrub(erased:)``. `now` is in whole Unix
    /// seconds.
    package func eraseRows(
        of name: AccountName, in app: AppName, at now: Int64
    ) throws(OperationalError) -> [SessionID] {
        let account = try account(name, of: app)
        guard !account.isErased else {
            throw OperationalError(.failed, message: "account \(name): was erased; that is for good")
        }
        // Before the account's row: if this is cut off, the command is run again, and still finds the number.
        let requests = try requestLog()
        try requests?.erase(account.number)
        let outcome = try store.erase(
            account,
            leaving: tombstoneKey().tombstones(
                of: name, userID: account.userID, numbered: account.number, in: app), at: now,
            recording: auditDraft(for: .accountErase, on: .account(name, of: app)))
        guard case .yes(let ended) = outcome else {
            throw OperationalError(.failed, message: "account \(name): was changed or erased meanwhile")
        }
        generation.advance()
        // Those that began until the sessions had ended.
        if let requests, try !requests.requests(of: account.number).isEmpty {
            try requests.erase(account.number)
        }
        return ended
    }

    /// Bodies of webhook deliveries have names as JSON, which escapes quotes and backslashes.
    private func scrub(
        _ names: [AccountName], rewriting: RewriteBound
    ) throws(OperationalError) -> ScrubOutcome {
        let texts = names.flatMap { name in
            [name.bytes, Array(JSONValue.string(name.description).bytes.dropFirst().dropLast())]
        }
        return try store.scrub(texts, rewriting: rewriting)
    }

    /// For ``AccountDraft``.
    func tombstones(
        of name: AccountName, userID: Int64?, in app: AppName
    ) throws(OperationalError) -> AccountTombstones {
        try tombstoneKey().tombstones(of: name, userID: userID, in: app)
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

/// The account that an audit record names.
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
