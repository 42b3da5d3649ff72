import CountersignSeal
import CountersignWire

/// What is wrong with the log, if anything.
package enum AuditFinding: Sendable, Equatable {
    /// Records that were there are gone: in the middle, or at the end.
    case missing(ClosedRange<Int64>)
    /// The record in this place is not what was written there.
    case altered(Int64)
    /// The record in this place belongs to another.
    case moved(from: Int64, to: Int64)
    /// There are records behind the end that the head tells of: the head is an older one.
    case beyondHead(ClosedRange<Int64>)
    /// The head is gone, or was not made with this deployment's key: how many records there were is not known.
    case headMissing
    case headAltered
    /// The log does not have the head that was noted elsewhere: all of it was put back to an earlier state, or replaced.
    case notedHeadMissing(AuditHead)
}

/// The outcome of reading the whole log.
package struct AuditVerification: Sendable, Equatable {
    /// How many records there are.
    package var records: Int64 = 0
    /// Where the log ends, where that can be known.
    package var head: AuditHead?
    package var findings: [AuditFinding] = []
}

extension AuditChain {
    /// Records read at once.
    private static let page = 1_000

    /// Reads all of the log. Appending may go on meanwhile: what is added after the head was read is not looked at.
    func verify(_ store: any AuditStore, noted: AuditHead?) throws(Fault) -> AuditVerification {
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
        /// Of the record before.
        var number: Int64 = 0
        /// What its tag is or, where it was altered, may have been, so that one alteration is told of once; empty where
        /// it is gone or another's, and the next record cannot be checked against it.
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
                // Ours begin at 1.
                return outcome.findings.append(.altered(row.number))
            }
            if row.number - number > 1 {
                outcome.findings.append(.missing(number + 1...row.number - 1))
                tags = []
            }
            tags = check(row)
            if let noted, noted.number == row.number, chain.holds(noted.tag, row.tag) { hasNoted = true }
            number = row.number
        }

        /// Answers what the record after it may be tied to.
        private mutating func check(_ row: AuditRow) -> [[UInt8]] {
            let claimed = AuditChain.number(in: row)
            if let claimed, claimed != row.number {
                outcome.findings.append(.moved(from: claimed, to: row.number))
                return []
            }
            let right = tags.map { chain.tag(of: row.record, behind: $0) }
            if claimed != nil, tags.isEmpty || right.contains(where: { chain.holds($0, row.tag) }) { return [row.tag] }
            outcome.findings.append(.altered(row.number))
            // Not all: in a log that was altered throughout there would be as many as records.
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
                if head.number == number, outcome.findings.isEmpty, !tags.contains(where: { chain.holds($0, head.tag) })
                {
                    outcome.findings.append(.altered(number))
                }
            }
            if let noted, !hasNoted { outcome.findings.append(.notedHeadMissing(noted)) }
            return outcome
        }
    }

    /// The number that a record itself says it has; nil where it cannot be read.
    private static func number(in row: AuditRow) -> Int64? {
        guard let document = row.document, let number = document.root["number"] else { return nil }
        return document.integer(number, in: 1...Int.max).map(Int64.init)
    }
}
