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

    /// How often the digest was changed.
    package var changes: UInt64 = 0
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

    /// `changes (8) ‖ rows (8) ‖ sums`.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(16 + RowDigest.groups * RowDigest.sumBytes)
        for number in [changes, UInt64(bitPattern: rows)] {
            for index in (0..<8).reversed() {
                bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * index)))
            }
        }
        for sum in sums { sum.append(to: &bytes) }
        return bytes
    }

    /// Nil if it is not what ``bytes`` writes.
    init?(_ span: Span<UInt8>) {
        guard span.count == 16 + RowDigest.groups * RowDigest.sumBytes else { return nil }
        changes = (0..<8).reduce(0) { $0 << 8 | UInt64(span[$1]) }
        rows = Int64(bitPattern: (8..<16).reduce(0) { $0 << 8 | UInt64(span[$1]) })
        span.withUnsafeBytes { bytes in
            for group in 0..<RowDigest.groups {
                let start = 16 + group * RowDigest.sumBytes
                sums[group] = RowSum(
                    unsafe: UnsafeRawBufferPointer(rebasing: bytes[start..<start + RowDigest.sumBytes]))
            }
        }
    }
}

/// The state of all digests together: how often each was changed, and the last record of the audit log. It
/// shows that a table was put back to an earlier state with its digest, or all tables without the audit log.
package struct RowSummary: Sendable, Equatable {
    /// The name under which a store keeps it beside the digests.
    package static let name = "all"

    /// ``RowDigest/changes`` by the table's number.
    package var changes: [UInt64]
    /// The number of the last audit record.
    package var audit: Int64

    package init(changes: [UInt64], audit: Int64) {
        self.changes = changes
        self.audit = audit
    }

    /// `audit ‖ changes…`, 8 bytes each.
    var bytes: [UInt8] {
        ([UInt64(bitPattern: audit)] + changes).flatMap { number in
            (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
        }
    }

    /// Nil if it is not what ``bytes`` writes.
    init?(_ span: Span<UInt8>) {
        guard span.count >= 8, span.count.isMultiple(of: 8) else { return nil }
        let numbers = (0..<span.count / 8).map { number in
            (0..<8).reduce(UInt64(0)) { $0 << 8 | UInt64(span[number * 8 + $1]) }
        }
        audit = Int64(bitPattern: numbers[0])
        changes = Array(numbers[1...])
    }
}
