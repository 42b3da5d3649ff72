import CountersignSeal
import CountersignWire

/// How far a store had come at one moment. A store whose head is behind one that was seen before is an
/// earlier copy: sessions that had ended live in it again. Source: docs/decisions/0102-earlier-copies.md.
package struct StoreHead: Sendable, Equatable {
    /// ``RowSummary/restored``. Heads with an earlier time do not count any more.
    package var restored: Int64 = 0
    /// The transactions of a PostgreSQL database, those of any table; 0 for a file.
    package var transactions: Int64 = 0
    /// ``RowSummary/changes``.
    package var changes: [UInt64] = []
    /// The last record of the audit log; without its tag if it is not known.
    package var audit = AuditHead.empty

    package init() {}

    package init(of summary: RowSummary, transactions: Int64) {
        (restored, changes, audit) = (summary.restored, summary.changes, summary.audit)
        self.transactions = transactions
    }

    /// How many changes this head lacks at least, compared with one that was seen before; 0 if none is known
    /// to be missing.
    package func missing(comparedWith other: StoreHead) -> UInt64 {
        guard restored == other.restored else { return restored < other.restored ? .max : 0 }
        var count = UInt64(max(0, other.audit.number - audit.number))
        count = max(count, UInt64(max(0, other.transactions - transactions)))
        let rows = zip(changes, other.changes).reduce(UInt64(0)) { sum, pair in
            sum &+ (pair.1 > pair.0 ? pair.1 - pair.0 : 0)
        }
        return max(count, rows)
    }

    /// A number that each change of authenticated rows and each record of the audit log increases.
    package var position: UInt64 { changes.reduce(UInt64(bitPattern: audit.number), &+) }

    /// Whether the store had come further than to that ``position``.
    package func isBeyond(_ position: UInt64) -> Bool { Int64(bitPattern: self.position &- position) > 0 }

    /// Moves on to what another head of the store has beyond this one.
    mutating func advance(to other: StoreHead) {
        guard restored == other.restored else {
            if restored < other.restored { self = other }
            return
        }
        transactions = max(transactions, other.transactions)
        if audit.number < other.audit.number { audit = other.audit }
        let common = zip(changes, other.changes).map { max($0, $1) }
        changes = common + changes.dropFirst(common.count) + other.changes.dropFirst(common.count)
    }

    /// `restored ‖ transactions ‖ audit number ‖ changes…`, 8 bytes each, behind the audit tag.
    fileprivate var bytes: [UInt8] {
        let numbers = [restored, transactions, audit.number].map(UInt64.init(bitPattern:)) + changes
        return audit.tag
            + numbers.flatMap { number in
                (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
            }
    }

    /// Nil if it is not what ``bytes`` writes.
    fileprivate init?(_ span: Span<UInt8>) {
        let start = AuditChain.tagCount
        guard span.count >= start + 24, (span.count - start).isMultiple(of: 8) else { return nil }
        let numbers = (0..<(span.count - start) / 8).map { number in
            (0..<8).reduce(UInt64(0)) { $0 << 8 | UInt64(span[start + number * 8 + $1]) }
        }
        restored = Int64(bitPattern: numbers[0])
        transactions = Int64(bitPattern: numbers[1])
        audit = AuditHead(number: Int64(bitPattern: numbers[2]), tag: (0..<start).map { span[$0] })
        changes = Array(numbers[3...])
    }
}

/// An operator's acceptance of an earlier copy as the store.
package struct AcceptedRestoration: Sendable, Equatable {
    /// What was ended again where only the changes of the last seconds were lost.
    package struct Repeated: Sendable, Equatable {
        /// No head has it.
        fileprivate static let none: Int64 = -1

        /// ``StoreHead/restored`` of the store that was lost.
        package var former: Int64
        /// How far its changes were ended again (``StoreHead/position``).
        package var position: UInt64
        /// From when keyed requests are accepted, in whole Unix seconds.
        package var keyedRequestsFrom: Int64

        package init(former: Int64, position: UInt64, keyedRequestsFrom: Int64) {
            (self.former, self.position, self.keyedRequestsFrom) = (former, position, keyedRequestsFrom)
        }
    }

    /// In whole Unix seconds.
    package var time: Int64
    /// Nil if all that may have ended was ended.
    package var repeated: Repeated?

    package init(at time: Int64, repeated: Repeated? = nil) { (self.time, self.repeated) = (time, repeated) }

    /// One that no later head of a lost store contradicts.
    package init(at time: Int64, keyedRequestsFrom start: Int64) {
        self.init(
            at: time,
            repeated: Repeated(former: Repeated.none, position: 0, keyedRequestsFrom: start))
    }

    /// Whether that head is of the lost store, and beyond what was ended again.
    package func lacks(_ head: StoreHead) -> Bool {
        guard let repeated, head.restored == repeated.former else { return false }
        return head.isBeyond(repeated.position)
    }

    fileprivate var text: String {
        guard let repeated else { return "\(time)" }
        return "\(time) \(repeated.former) \(repeated.position) \(repeated.keyedRequestsFrom)"
    }

    /// Nil if it is not what ``text`` writes.
    fileprivate init?(_ text: String) {
        let words = text.split(separator: " ")
        guard let time = words.first.flatMap({ Int64($0) }) else { return nil }
        self.init(at: time)
        guard words.count > 1 else { return }
        guard words.count == 4, let former = Int64(words[1]), let position = UInt64(words[2]),
            let start = Int64(words[3])
        else { return nil }
        repeated = Repeated(former: former, position: position, keyedRequestsFrom: start)
    }
}

/// What a node tells the others of a store that is behind the head which its data folder has kept.
package struct HeadReport: Sendable {
    package var head: StoreHead
    /// The machine and the path of the data folder.
    package var reporter: String

    package init(head: StoreHead, reporter: String) { (self.head, self.reporter) = (head, reporter) }

    /// `length (1) ‖ reporter ‖ head`.
    fileprivate var bytes: [UInt8] {
        let name = Array(reporter.utf8.suffix(255))
        return [UInt8(name.count)] + name + head.bytes
    }

    /// Nil if it is not what ``bytes`` writes.
    fileprivate init?(_ span: Span<UInt8>) {
        guard span.count > 0, span.count > Int(span[0]) else { return nil }
        let end = 1 + Int(span[0])
        guard let head = StoreHead(span.extracting(end..<span.count)) else { return nil }
        self.init(head: head, reporter: String(decoding: (1..<end).map { span[$0] }, as: UTF8.self))
    }
}

/// What a store says of its own history, read at one moment.
package struct StoreState: Sendable {
    package var transactions: Int64 = 0
    /// The sealed ``RowSummary``.
    package var summary: [UInt8]?
    /// The number and tag of the audit record at the number that was asked for.
    package var asked: AuditHead?
    /// ``MetaName/restoredInPlace``.
    package var restored: [UInt8]?
    /// ``MetaName/reportedHead``.
    package var reported: [UInt8]?

    package init() {}
}

/// A store that tells how far it has come.
package protocol HistoryStore: Sendable {
    /// `number` is the audit record that is asked for.
    func state(askingForAuditRecord number: Int64) throws(OperationalError) -> StoreState
    /// The database's clock, in milliseconds since the Unix epoch; nil for a file.
    func clock() throws(OperationalError) -> Int64?
    /// Tells the other nodes of a sealed head that this store is behind. For a store of one machine, does
    /// nothing.
    func report(_ head: [UInt8]) throws(OperationalError)
}

extension RowAuthenticator {
    func seal(_ head: StoreHead) -> [UInt8] {
        var bytes = head.bytes
        return sealUnderDigestKey(Secret(taking: &bytes), as: .storeHead)
    }

    /// Nil if it was not sealed by this deployment.
    package func openHead(_ sealed: [UInt8]) -> StoreHead? {
        openUnderDigestKey(sealed, as: .storeHead).flatMap { $0.withExposedBytes { StoreHead($0) } }
    }

    /// The value of ``MetaName/reportedHead``.
    func seal(_ report: HeadReport) -> [UInt8] {
        var bytes = report.bytes
        return sealUnderDigestKey(Secret(taking: &bytes), as: .headReport)
    }

    /// Nil if it was not sealed by this deployment.
    func openReport(_ sealed: [UInt8]) -> HeadReport? {
        openUnderDigestKey(sealed, as: .headReport).flatMap { $0.withExposedBytes { HeadReport($0) } }
    }

    /// The value of ``MetaName/restoredInPlace``.
    package func seal(_ restoration: AcceptedRestoration) -> [UInt8] {
        var bytes = Array(restoration.text.utf8)
        return sealUnderDigestKey(Secret(taking: &bytes), as: .restoredInPlace)
    }

    /// The restoration that has made the store's state; nil if it was carried to another one, whose summary
    /// has not its time.
    package func restoration(of state: StoreState) -> AcceptedRestoration? {
        guard let restoration = state.restored.flatMap({ openRestoration($0) }),
            restoration.time == state.summary.flatMap({ openSummary($0) })?.restored
        else { return nil }
        return restoration
    }

    /// Nil if it was not sealed by this deployment.
    func openRestoration(_ sealed: [UInt8]) -> AcceptedRestoration? {
        openUnderDigestKey(sealed, as: .restoredInPlace).flatMap { opened in
            opened.withExposedBytes { bytes in
                AcceptedRestoration(String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self))
            }
        }
    }
}

extension SealBinding {
    fileprivate static let storeHead = SealBinding(kind: "store-head", row: "head")
    fileprivate static let headReport = SealBinding(kind: "store-head", row: "report")
    fileprivate static let restoredInPlace = SealBinding(kind: "store-head", row: "restored")
}
