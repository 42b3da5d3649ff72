import CountersignGate
import CountersignWire

/// The storage of the audit log: rows that are added and never changed.
package protocol AuditStore: Sendable {
    /// At most `limit` rows above `number`, in order.
    func auditRows(after number: Int64, limit: Int) throws(OperationalError) -> [AuditRow]
    /// The stored head and the last row's number, read in one transaction; nil and 0 if there are none.
    func auditEnd() throws(OperationalError) -> (head: [UInt8]?, last: Int64)
}

/// A stored record.
package struct AuditRow: Sendable, Equatable {
    /// 1 for the first record, and one more for each.
    package var number: Int64
    /// The record's own bytes.
    package var record: [UInt8]
    /// The HMAC that binds the record to the previous one.
    package var tag: [UInt8]

    package init(number: Int64, record: [UInt8], tag: [UInt8]) {
        self.number = number
        self.record = record
        self.tag = tag
    }

    /// The parsed record; nil if the bytes are not JSON, or longer than any command can have written.
    package var document: JSONDocument? {
        // A command line holds 2 MiB, and each of its bytes may take six in JSON.
        var bounds = JSONReader.Bounds()
        bounds.bytes = 16 << 20
        return try? JSONReader.read(record, bounds: bounds)
    }
}

/// The record of a change, which the store adds in the change's own transaction, so that both are stored or
/// neither. Its place in the chain is determined there, because only the transaction knows the previous
/// record.
package struct AuditDraft: Sendable {
    package typealias Place = (row: AuditRow, head: [UInt8])
    private let place: @Sendable ([UInt8]?, PseudonymLookup) throws(OperationalError) -> Place
    /// What endpoints of webhooks are told of the change; the store adds it to the outbox in the same
    /// transaction. Nil if no endpoint is told of such changes.
    package let notice: WebhookNotice?
    /// The party that makes the change; nil if it is not known.
    package let actor: AuditActor?

    package init(
        by actor: AuditActor? = nil, _ place: @escaping @Sendable ([UInt8]?) throws(OperationalError) -> Place
    ) {
        self.place = { (head, _) throws(OperationalError) in try place(head) }
        self.actor = actor
        notice = nil
    }

    /// For records that name accounts.
    init(
        by actor: AuditActor, telling notice: WebhookNotice?,
        naming place: @escaping @Sendable ([UInt8]?, PseudonymLookup) throws(OperationalError) -> Place
    ) {
        self.place = place
        self.notice = notice
        self.actor = actor
    }

    /// For the store: returns the row to add after `head` (the value of ``MetaName/auditHead``), and the
    /// head that replaces it. `lookup` reads the change's transaction.
    package func row(
        after head: [UInt8]?, naming lookup: PseudonymLookup
    ) throws(OperationalError) -> Place {
        try place(head, lookup)
    }
}

/// The pseudonym of an app's account; a random one for a name without an account. Only pseudonyms enter the
/// log, because nothing can be removed from it.
package typealias PseudonymLookup = (AccountName, AppName) throws(OperationalError) -> AccountPseudonym

/// Whether a change was made; only a change that was made is recorded.
package protocol StoreOutcome {
    var didChange: Bool { get }
}

extension InsertOutcome: StoreOutcome {
    package var didChange: Bool { self == .yes }
}

extension ChangeOutcome: StoreOutcome {
    package var didChange: Bool { self == .yes }
}

/// Makes the records that changes hand to the store.
struct AuditRecorder: Sendable {
    let chain: AuditChain
    /// The party that changes are recorded for.
    let actor: AuditActor
    let clock: any TimeSource

    func draft(
        for action: AuditAction, on subject: AuditSubject, details: [(name: String, value: JSONValue)],
        by actor: AuditActor? = nil
    ) -> AuditDraft {
        let entry = AuditEntry(actor: actor ?? self.actor, action: action, subject: subject, details: details)
        let (chain, time) = (chain, clock.estimate)
        return AuditDraft(
            by: entry.actor, telling: WebhookNotice(entry, at: time),
            naming: { (sealed, lookup) throws(OperationalError) in
                // Nothing is added after a head that was altered: that would make the log look intact.
                guard let sealed, let head = chain.head(sealed), head.number < .max else {
                    throw OperationalError(
                        .failed,
                        message:
                            "audit log: its head was altered or removed; nothing was changed. "
                            + "`countersign audit verify` tells more"
                    )
                }
                let record = try entry.record(number: head.number + 1, at: time, naming: lookup)
                let tag = chain.tag(of: record, behind: head.tag)
                return (
                    AuditRow(number: head.number + 1, record: record, tag: tag),
                    chain.sealed(AuditHead(number: head.number + 1, tag: tag))
                )
            })
    }
}

/// The audit log, as commands write and read it.
extension Deployment {
    /// The record that a change hands to the store. `details` must contain no secret.
    package func auditDraft(
        for action: AuditAction, on subject: AuditSubject, details: [(name: String, value: JSONValue)] = [],
        by actor: AuditActor? = nil
    ) -> AuditDraft {
        AuditRecorder(chain: auditChain, actor: self.actor, clock: clock).draft(
            for: action, on: subject, details: details, by: actor)
    }

    /// The time of the newest record, in whole Unix seconds. Returns 0 if the log is empty or the record
    /// cannot be read.
    package func newestAuditTime() throws(OperationalError) -> Int64 {
        for row in try auditRecords(last: 1) {
            guard let document = row.document, let time = document.root["time"] else { continue }
            return document.integer(time, in: 0...Int.max).map(Int64.init) ?? 0
        }
        return 0
    }

    /// Records that a server no longer trusts its clock, or trusts it again.
    package func recordClock(isTrusted: Bool, reason: String) throws(OperationalError) {
        let draft = auditDraft(
            for: isTrusted ? .clockTrust : .clockDoubt, on: .deployment,
            details: [("reason", .string(reason))], by: .server)
        try store.set(.writeCheck, to: Array(String(clock.estimate).utf8), recording: draft)
    }

    /// Verifies every record. `noted` is a head that was noted elsewhere earlier, and that the log must
    /// still contain.
    package func verifyAudit(noted: AuditHead? = nil) throws(OperationalError) -> AuditVerification {
        try auditChain.verify(store, noted: noted)
    }

    /// The last records, at most `limit`, oldest first, without verification.
    package func auditRecords(last limit: Int) throws(OperationalError) -> [AuditRow] {
        // An altered row may have any number; the subtraction must not trap on it.
        let (first, _) = try store.auditEnd().last.subtractingReportingOverflow(Int64(limit))
        return try store.auditRows(after: first, limit: limit)
    }
}
