import CountersignGate
import CountersignWire

/// The log of what administrators did, as commands write and read it.
extension Deployment {
    /// What a change hands to the store, to be recorded with it. `details` must hold no secret.
    func recording(
        _ action: AuditAction, _ subject: AuditSubject, _ details: [(name: String, value: JSONValue)] = [],
        by actor: AuditActor? = nil
    ) -> AuditDraft {
        let entry = AuditEntry(actor: actor ?? self.actor, action: action, subject: subject, details: details)
        let (chain, time) = (auditChain, clock.now)
        return AuditDraft { (sealed) throws(Fault) in
            // Behind an end that was altered nothing is added: that would make it look whole.
            guard let sealed, let head = chain.head(sealed), head.number < .max else {
                throw Fault(
                    .failed,
                    "audit log: its head was altered or removed; nothing was changed. `countersign audit verify` tells more"
                )
            }
            let record = entry.record(number: head.number + 1, at: time)
            let tag = chain.tag(of: record, behind: head.tag)
            return (
                AuditRow(number: head.number + 1, record: record, tag: tag),
                chain.sealed(AuditHead(number: head.number + 1, tag: tag))
            )
        }
    }

    /// Looks at every record. `noted` is a head that was written down earlier and elsewhere, and must still be there.
    package func verifyAudit(noted: AuditHead? = nil) throws(Fault) -> AuditVerification {
        try auditChain.verify(store, noted: noted)
    }

    /// The last records, at most `limit`, oldest first; as they stand, without looking whether they are whole.
    package func auditRecords(last limit: Int) throws(Fault) -> [AuditRow] {
        // What is there may have any number, and none may end the process.
        let (first, _) = try store.auditEnd().last.subtractingReportingOverflow(Int64(limit))
        return try store.auditRows(after: first, limit: limit)
    }
}
