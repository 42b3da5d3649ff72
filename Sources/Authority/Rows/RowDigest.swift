import CountersignSeal

/// A sum of 256 bits, modulo 2^256.
package struct RowSum: Sendable, Equatable {
    /// The least significant first.
    private var limbs = (UInt64(0), UInt64(0), UInt64(0), UInt64(0))

    package init() {}

    init(_ digest: Digest32) {
        limbs = digest.span.withUnsafeBytes { RowSum(unsafe: $0).limbs }
    }

    fileprivate init(unsafe bytes: UnsafeRawBufferPointer) {
        limbs = (
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)),
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self))
        )
    }

    package static func == (left: RowSum, right: RowSum) -> Bool { left.limbs == right.limbs }

    package static func += (sum: inout RowSum, other: RowSum) {
        var carry = false
        (sum.limbs.0, carry) = add(other.limbs.0, to: sum.limbs.0, carry: carry)
        (sum.limbs.1, carry) = add(other.limbs.1, to: sum.limbs.1, carry: carry)
        (sum.limbs.2, carry) = add(other.limbs.2, to: sum.limbs.2, carry: carry)
        (sum.limbs.3, _) = add(other.limbs.3, to: sum.limbs.3, carry: carry)
    }

    package static prefix func - (sum: RowSum) -> RowSum {
        var negated = RowSum()
        negated.limbs = (~sum.limbs.0, ~sum.limbs.1, ~sum.limbs.2, ~sum.limbs.3)
        var one = RowSum()
        one.limbs.0 = 1
        negated += one
        return negated
    }

    private static func add(_ left: UInt64, to right: UInt64, carry: Bool) -> (UInt64, Bool) {
        let (sum, first) = left.addingReportingOverflow(right)
        let (all, second) = sum.addingReportingOverflow(carry ? 1 : 0)
        return (all, first || second)
    }

    fileprivate func append(to bytes: inout [UInt8]) {
        for limb in [limbs.0, limbs.1, limbs.2, limbs.3] {
            for shift in stride(from: 0, to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: limb >> shift))
            }
        }
    }
}

/// The digest of a table: a multiset hash of its rows, the sum of a keyed hash of each. A change subtracts
/// the old row and adds the new one, whatever the size of the table. There is a sum for each group of
/// accounts, so that a row that is missing makes only its group unusable.
///
/// The difference of two digests is a digest too, which a transaction collects.
package struct RowDigest: Sendable, Equatable {
    package static let groups = 64
    private static let sumBytes = 32
    /// Before the sums.
    private static let firstBytes = 16 + DigestID.byteCount

    /// How often the digest was changed.
    package var changes: UInt64 = 0
    /// Another one for each state that is stored.
    package var id = DigestID.none
    package private(set) var rows: Int64 = 0
    private var sums = [RowSum](repeating: RowSum(), count: groups)

    package init() {}

    package mutating func add(_ sum: RowSum, group: Int) {
        sums[group] += sum
        rows &+= 1
    }

    package mutating func remove(_ sum: RowSum, group: Int) {
        sums[group] += -sum
        rows &-= 1
    }

    package mutating func apply(_ difference: RowDigest) {
        for group in sums.indices { sums[group] += difference.sums[group] }
        rows &+= difference.rows
        changes &+= 1
    }

    /// The groups whose rows are not those of `other`.
    package func groups(differingFrom other: RowDigest) -> [Int] {
        sums.indices.filter { sums[$0] != other.sums[$0] }
    }

    /// Whether the rows of one group are those of `other`.
    package func hasSameRows(inGroup group: Int, as other: RowDigest) -> Bool {
        sums[group] == other.sums[group]
    }

    /// `changes (8) ‖ rows (8) ‖ id (16) ‖ sums`.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(RowDigest.firstBytes + RowDigest.groups * RowDigest.sumBytes)
        for number in [changes, UInt64(bitPattern: rows), id.high, id.low] { bytes.append(number: number) }
        for sum in sums { sum.append(to: &bytes) }
        return bytes
    }

    /// Nil if it is not what ``bytes`` writes.
    init?(_ span: Span<UInt8>) {
        guard span.count == RowDigest.firstBytes + RowDigest.groups * RowDigest.sumBytes else { return nil }
        func number(at start: Int) -> UInt64 { (start..<start + 8).reduce(0) { $0 << 8 | UInt64(span[$1]) } }
        changes = number(at: 0)
        rows = Int64(bitPattern: number(at: 8))
        id = DigestID(high: number(at: 16), low: number(at: 24))
        span.withUnsafeBytes { bytes in
            for group in 0..<RowDigest.groups {
                let start = RowDigest.firstBytes + group * RowDigest.sumBytes
                sums[group] = RowSum(
                    unsafe: UnsafeRawBufferPointer(rebasing: bytes[start..<start + RowDigest.sumBytes]))
            }
        }
    }
}

/// A random number that a digest gets each time it is stored, so that no other state of it fits the summary.
package struct DigestID: Sendable, Equatable {
    static let byteCount = 16
    /// No digest has it: of a table that no digest fits any more.
    static let none = DigestID(high: 0, low: 0)

    fileprivate let high: UInt64
    fileprivate let low: UInt64

    package static func random() -> DigestID {
        var source = SystemRandomNumberGenerator()
        return DigestID(high: source.next() | 1, low: source.next())
    }
}

/// The state of all digests together, and the last record of the audit log. It shows that a table was put
/// back to an earlier state with its digest, or all tables without the audit log.
///
/// A table whose digest is not the summary's when its rows change, or an audit log whose end is not, is given
/// up: nothing fits it until the rows are accepted. Otherwise later changes could make it fit again, or undo
/// what was changed meanwhile.
package struct RowSummary: Sendable, Equatable {
    /// The name under which a store keeps it beside the digests.
    package static let name = "all"
    /// Before the tables.
    private static let firstBytes = 17 + AuditChain.tagCount
    private static let tableBytes = 8 + DigestID.byteCount

    /// ``RowDigest/changes`` by the table's number.
    package private(set) var changes: [UInt64]
    private var ids: [DigestID]
    /// The last audit record; without its tag after the log was given up.
    package private(set) var audit: AuditHead
    private var isLogGivenUp = false
    /// When an operator last restored the store in place, in whole Unix seconds; 0 if never. It is here
    /// because the value cannot be carried to another state of the store.
    package var restored: Int64

    package init(of digests: [RowDigest], audit: AuditHead, restored: Int64 = 0) {
        (changes, ids) = (digests.map(\.changes), digests.map(\.id))
        self.audit = RowSummary.fitted(audit)
        self.restored = restored
    }

    /// Whether it was made with this digest of `table`.
    package func contains(_ digest: RowDigest, of table: AuthenticatedTable) -> Bool {
        let number = table.number
        return changes.indices.contains(number) && changes[number] == digest.changes
            && ids[number] == digest.id && digest.id != .none
    }

    /// Moves on to a later digest of `table`.
    package mutating func advance(to digest: RowDigest, of table: AuthenticatedTable) {
        (changes[table.number], ids[table.number]) = (digest.changes, digest.id)
    }

    /// Gives up `table`, whose rows change under a digest that is not the summary's. Its changes still count.
    package mutating func giveUp(_ table: AuthenticatedTable) {
        guard changes.indices.contains(table.number) else { return }
        changes[table.number] &+= 1
        ids[table.number] = .none
    }

    /// Whether it was made with this record as the log's last one.
    package func ends(with last: AuditHead) -> Bool {
        !isLogGivenUp && audit == RowSummary.fitted(last)
    }

    /// A tag that another program wrote can have another length.
    private static func fitted(_ head: AuditHead) -> AuditHead {
        let tag = head.tag.prefix(AuditChain.tagCount)
        return AuditHead(
            number: head.number, tag: tag + [UInt8](repeating: 0, count: AuditChain.tagCount - tag.count))
    }

    /// Moves on to `last`, before whose records `former` was the log's last one.
    package mutating func advance(to last: AuditHead, after former: AuditHead) {
        isLogGivenUp = !ends(with: former)
        audit =
            isLogGivenUp
            ? AuditHead(number: max(audit.number &+ 1, last.number), tag: AuditChain.firstTag)
            : RowSummary.fitted(last)
    }

    /// `restored (8) ‖ audit number (8) ‖ audit tag ‖ given up (1)`, then `changes (8) ‖ id (16)` of each
    /// table.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(RowSummary.firstBytes + changes.count * RowSummary.tableBytes)
        bytes.append(number: UInt64(bitPattern: restored))
        bytes.append(number: UInt64(bitPattern: audit.number))
        bytes.append(contentsOf: audit.tag)
        bytes.append(isLogGivenUp ? 1 : 0)
        for (changes, id) in zip(changes, ids) {
            for number in [changes, id.high, id.low] { bytes.append(number: number) }
        }
        return bytes
    }

    /// Nil if it is not what ``bytes`` writes.
    init?(_ span: Span<UInt8>) {
        let (first, each) = (RowSummary.firstBytes, RowSummary.tableBytes)
        guard span.count >= first, (span.count - first).isMultiple(of: each) else { return nil }
        func number(at start: Int) -> UInt64 { (start..<start + 8).reduce(0) { $0 << 8 | UInt64(span[$1]) } }
        restored = Int64(bitPattern: number(at: 0))
        audit = AuditHead(number: Int64(bitPattern: number(at: 8)), tag: (16..<first - 1).map { span[$0] })
        isLogGivenUp = span[first - 1] != 0
        let tables = stride(from: first, to: span.count, by: each)
        changes = tables.map { number(at: $0) }
        ids = tables.map { DigestID(high: number(at: $0 + 8), low: number(at: $0 + 16)) }
    }
}

extension [UInt8] {
    fileprivate mutating func append(number: UInt64) {
        for index in 0..<8 { append(UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * index))) }
    }
}
