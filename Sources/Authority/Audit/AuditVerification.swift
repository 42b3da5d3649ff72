import CountersignSeal
import CountersignWire

/// A defect of the log.
package enum AuditFinding: Sendable, Equatable {
    /// Records are missing, in the middle or at the end.
    case missing(ClosedRange<Int64>)
    /// The record at this number is not the one that was written there.
    case altered(Int64)
    /// The record at this number has the number of another.
    case moved(from: Int64, to: Int64)
    /// There are records after the one that the head names: the head is an older one.
    case beyondHead(ClosedRange<Int64>)
    /// The head is missing, or was not made with this deployment's key; the number of records is then
    /// unknown.
    case headMissing
    case headAltered
    /// The log does not contain the head that was noted elsewhere: the whole log was replaced, or restored
    /// from an earlier state.
    case notedHeadMissing(AuditHead)
}

/// The result of verifying the whole log.
package struct AuditVerification: Sendable, Equatable {
    /// The number of records.
    package var records: Int64 = 0
    /// The end of the log, if its head is authentic.
    package var head: AuditHead?
    package var findings: [AuditFinding] = []
}

extension AuditChain {
    /// Records per read.
    private static let page = 1_000

    /// Reads the whole log. Appending may continue meanwhile; records added after the head was read are
    /// ignored.
    func verify(_ store: any AuditStore, noted: AuditHead?) throws(OperationalError) -> AuditVerification {
        let end = try store.auditEnd()
        var walk = Walk(chain: self, noted: noted)
        var after = Int64.min
        while true {
            let rows = try store.auditRows(after: after, limit: AuditChain.page)
            for row in rows where row.number <= end.last { walk.see(row) }
            guard let last = rows.last, rows.count == AuditChain.page, last.number < end.last else { break }
            after = last.number
        }
        return walk.finish(end.head)
    }

    private struct Walk {
        let chain: AuditChain
        let noted: AuditHead?
        var outcome = AuditVerification()
        /// The number of the previous record.
        var number: Int64 = 0
        /// The possible tags of the previous record: its own, and if it was altered the original ones, so
        /// that one alteration gives one finding. Empty if the previous record is missing or moved; the
        /// next one can then not be checked against it.
        var tags = [AuditChain.firstTag]
        var hasNoted: Bool

        init(chain: AuditChain, noted: AuditHead?) {
            self.chain = chain
            self.noted = noted
            hasNoted = noted == nil || noted == .empty
        }

        mutating func see(_ row: AuditRow) {
            outcome.records += 1
            guard row.number > number else {
                // Numbers begin at 1.
                return outcome.findings.append(.altered(row.number))
            }
            if row.number - number > 1 {
                outcome.findings.append(.missing(number + 1...row.number - 1))
                tags = []
            }
            tags = check(row)
            if let noted, noted.number == row.number, chain.isEqual(noted.tag, to: row.tag) {
                hasNoted = true
            }
            number = row.number
        }

        /// Returns the tags that the next record may be chained to.
        private mutating func check(_ row: AuditRow) -> [[UInt8]] {
            let claimed = AuditChain.number(in: row)
            if let claimed, claimed != row.number {
                outcome.findings.append(.moved(from: claimed, to: row.number))
                return []
            }
            let right = tags.map { chain.tag(of: row.record, behind: $0) }
            if claimed != nil, tags.isEmpty || right.contains(where: { chain.isEqual($0, to: row.tag) }) {
                return [row.tag]
            }
            outcome.findings.append(.altered(row.number))
            // Bounded: in a log that was altered throughout there would otherwise be as many tags as
            // records.
            return [row.tag] + right.prefix(2)
        }

        consuming func finish(_ sealed: [UInt8]?) -> AuditVerification {
            if let sealed {
                outcome.head = chain.head(sealed)
                if outcome.head == nil { outcome.findings.append(.headAltered) }
            } else {
                outcome.findings.append(.headMissing)
            }
            if let head = outcome.head {
                if head.number > number { outcome.findings.append(.missing(number + 1...head.number)) }
                if head.number < number { outcome.findings.append(.beyondHead(head.number + 1...number)) }
                if head.number == number, outcome.findings.isEmpty,
                    !tags.contains(where: { chain.isEqual($0, to: head.tag) })
                {
                    outcome.findings.append(.altered(number))
                }
            }
            if let noted, !hasNoted { outcome.findings.append(.notedHeadMissing(noted)) }
            return outcome
        }
    }

    /// The number in the record itself; nil if it cannot be read.
    static func number(in row: AuditRow) -> Int64? {
        guard let document = row.document, let number = document.root["number"] else { return nil }
        return document.integer(number, in: 1...Int.max).map(Int64.init)
    }
}
