import CountersignWire

/// Where the audit log is kept: rows that are added and never changed.
package protocol AuditStore: Sendable {
    /// The rows with a higher number, by number, at most `limit` of them.
    func auditRows(after number: Int64, limit: Int) throws(Fault) -> [AuditRow]
    /// How the log ends and the last number that is there, as of one moment; nil and 0 where there is nothing.
    func auditEnd() throws(Fault) -> (head: [UInt8]?, last: Int64)
}

/// A record as it is kept.
package struct AuditRow: Sendable, Equatable {
    /// 1 for the first, and one more for each.
    package var number: Int64
    /// The record's own bytes.
    package var record: [UInt8]
    /// The HMAC that ties it to the record before it.
    package var tag: [UInt8]

    package init(number: Int64, record: [UInt8], tag: [UInt8]) {
        self.number = number
        self.record = record
        self.tag = tag
    }

    /// The record read; nil where what stands there is no JSON, or more than any command can have written.
    package var document: JSONDocument? {
        // A command line holds 2 MiB, and each of its bytes may take six in JSON.
        var bounds = JSONReader.Bounds()
        bounds.bytes = 16 << 20
        return try? JSONReader.read(record, bounds: bounds)
    }
}

/// What is to be added to the log with a change, in the change's own transaction: a store that makes one without the
/// other has done neither. Its place in the chain is found there, because only there is it known what comes before it.
package struct AuditDraft: Sendable {
    private let place: @Sendable ([UInt8]?) throws(Fault) -> (row: AuditRow, head: [UInt8])

    package init(_ place: @escaping @Sendable ([UInt8]?) throws(Fault) -> (row: AuditRow, head: [UInt8])) {
        self.place = place
    }

    /// For the store: the row to add behind what ends in `head` (the value of ``MetaName/auditHead``), and the head to
    /// keep in its place.
    package func placed(behind head: [UInt8]?) throws(Fault) -> (row: AuditRow, head: [UInt8]) { try place(head) }
}

/// Whether a change came about; what did not is not recorded.
package protocol StoreOutcome {
    var cameAbout: Bool { get }
}

extension Inserted: StoreOutcome {
    package var cameAbout: Bool { self == .yes }
}

extension Changed: StoreOutcome {
    package var cameAbout: Bool { self == .yes }
}
