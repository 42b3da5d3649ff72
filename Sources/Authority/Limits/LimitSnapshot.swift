import CountersignSeal

/// A table as bytes, so that a process that dies does not forget who has guessed how often.
///
/// `"CSLIMIT1" ‖ sets (4) ‖ hash key (16) ‖ count (4) ‖ count × (set (4) ‖ tag (8) ‖ whole (8)) ‖ SHA-256 (32)`, numbers
/// big-endian. The digest finds a torn write; who can write the file could have changed the program. The hash key is
/// kept in it, so the file is for the server's own eyes.
extension LimitTable {
    /// Whoever holds the bytes could not be trusted to have them whole, or they are of another table.
    package enum NotRestored: Error, Sendable, Equatable {
        /// Not what ``snapshot(at:)`` gives.
        case malformed
        /// Of a table with another capacity, where keys lie elsewhere.
        case otherShape
    }

    private static let magic = Array("CSLIMIT1".utf8)
    private static let headCount = 8 + 4 + 16 + 4
    private static let entryCount = 4 + 8 + 8
    private static let digestCount = 32

    /// What counts at `now`; keys whose allowance is whole are left out. Holds no two locks at once: attempts go on
    /// meanwhile, and each of them is in it or is not.
    package func snapshot(at now: Int64) -> [UInt8] {
        var bytes = LimitTable.magic
        append(UInt64(setCount), 4, to: &bytes)
        for index in hashKey.indices { bytes.append(hashKey[index]) }
        append(0, 4, to: &bytes)
        var count: UInt64 = 0
        for set in 0..<setCount {
            withSet(number: set) { entries in
                for entry in entries where entry.whole > now {
                    append(UInt64(set), 4, to: &bytes)
                    append(entry.tag, 8, to: &bytes)
                    append(UInt64(bitPattern: entry.whole), 8, to: &bytes)
                    count += 1
                }
            }
        }
        for (index, shift) in [24, 16, 8, 0].enumerated() {
            bytes[LimitTable.headCount - 4 + index] = UInt8(truncatingIfNeeded: count >> UInt64(shift))
        }
        let digest = SHA256.digest(bytes.span)
        for index in digest.indices { bytes.append(digest[index]) }
        return bytes
    }

    /// The hash key that a snapshot was made with, for the table that is to restore it.
    package static func hashKey(of snapshot: [UInt8]) throws(NotRestored) -> KeyedHash.Key {
        try check(snapshot)
        return KeyedHash.Key { snapshot[12 + $0] }
    }

    /// Puts a snapshot's keys back into a table that has just been made with its hash key and the same capacity.
    package func restore(_ snapshot: [UInt8], at now: Int64) throws(NotRestored) {
        try LimitTable.check(snapshot)
        func number(_ start: Int, _ count: Int) -> UInt64 {
            snapshot[start..<start + count].reduce(0) { $0 << 8 | UInt64($1) }
        }
        let isSame = hashKey.indices.allSatisfy { hashKey[$0] == snapshot[12 + $0] }
        guard number(8, 4) == UInt64(setCount), isSame else { throw .otherShape }
        var start = LimitTable.headCount
        while start < snapshot.count - LimitTable.digestCount {
            let set = Int(number(start, 4))
            guard set < setCount else { throw .malformed }
            let entry = LimitEntry(
                tag: number(start + 4, 8), whole: min(Int64(bitPattern: number(start + 12, 8)), now + allowance.span))
            try place(entry, in: set)
            start += LimitTable.entryCount
        }
    }

    private func place(_ entry: LimitEntry, in set: Int) throws(NotRestored) {
        let isPlaced: Bool = withSet(number: set) { entries in
            guard let free = entries.firstIndex(where: { $0.whole == LimitEntry.never }) else { return false }
            entries[free] = entry
            return true
        }
        guard isPlaced else { throw .malformed }
    }

    private static func check(_ snapshot: [UInt8]) throws(NotRestored) {
        let least = headCount + digestCount
        guard snapshot.count >= least, snapshot.starts(with: magic) else { throw .malformed }
        let count = snapshot[headCount - 4..<headCount].reduce(0) { $0 << 8 | Int($1) }
        guard snapshot.count == least + count * entryCount else { throw .malformed }
        let digest = SHA256.digest(snapshot.span.extracting(0..<snapshot.count - digestCount))
        for index in 0..<digestCount where snapshot[snapshot.count - digestCount + index] != digest[index] {
            throw .malformed
        }
    }

    private func append(_ number: UInt64, _ count: Int, to bytes: inout [UInt8]) {
        for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * (count - 1 - index)))) }
    }
}
