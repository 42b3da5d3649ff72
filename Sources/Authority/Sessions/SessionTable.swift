import CountersignWire

/// Sessions by their id: open addressing over record numbers; the records lie in blocks of fixed size. Ids
/// are random, so their own bits serve as the hash. The secrets lie apart, because most sessions of a server
/// that has just started have none.
struct SessionTable {
    private struct Entry {
        var session: SessionRecord
        /// The number of its secret; 0 for none.
        var secret: UInt32
    }

    private static let blockCount = 256
    private static let free: UInt32 = 0

    private var blocks: [[Entry]] = []
    private var secrets = SessionSecretTable()
    private(set) var count = 0
    private(set) var endedCount = 0
    /// Record numbers from 1; 0 marks a free slot. The size is a power of two, and at most half of the
    /// slots are used.
    private var index: [UInt32] = Array(repeating: SessionTable.free, count: 64)

    func find(_ id: SessionID) -> SessionRecord? {
        let slot = slot(of: id)
        return index[slot] == SessionTable.free ? nil : record(index[slot])
    }

    func secret(of id: SessionID) -> SessionSecret? {
        let slot = slot(of: id)
        return index[slot] == SessionTable.free ? nil : secrets[entry(index[slot]).secret]
    }

    /// Inserts the record, or replaces the one with the same id, and its secret.
    mutating func put(_ session: SessionRecord, secret: SessionSecret? = nil) {
        let slot = slot(of: session.id)
        if session.isEnded { endedCount += 1 }
        guard index[slot] == SessionTable.free else {
            let before = entry(index[slot])
            if before.session.isEnded { endedCount -= 1 }
            let number = secrets.replace(before.secret, by: secret)
            return write(Entry(session: session, secret: number), as: index[slot])
        }
        if blocks.last.map({ $0.count == SessionTable.blockCount }) ?? true {
            blocks.append([])
            blocks[blocks.count - 1].reserveCapacity(SessionTable.blockCount)
        }
        let number = secrets.replace(SessionTable.free, by: secret)
        blocks[blocks.count - 1].append(Entry(session: session, secret: number))
        count += 1
        index[slot] = UInt32(count)
        if count * 2 > index.count { grow() }
    }

    mutating func remove(_ id: SessionID) {
        var hole = slot(of: id)
        let number = index[hole]
        guard number != SessionTable.free else { return }
        let removed = entry(number)
        if removed.session.isEnded { endedCount -= 1 }
        _ = secrets.replace(removed.secret, by: nil)
        // Later entries of the probe sequence move up, or a search would end at the hole.
        var next = hole
        while true {
            next = (next + 1) & (index.count - 1)
            guard index[next] != SessionTable.free else { break }
            let home = home(of: recordID(index[next]))
            if (next &- home) & (index.count - 1) >= (next &- hole) & (index.count - 1) {
                index[hole] = index[next]
                hole = next
            }
        }
        index[hole] = SessionTable.free
        fillGap(number)
    }

    /// Moves the last record into the place of the removed one.
    private mutating func fillGap(_ number: UInt32) {
        let last = UInt32(count)
        if number != last {
            let moved = entry(last)
            index[slot(of: moved.session.id)] = number
            write(moved, as: number)
        }
        blocks[blocks.count - 1].removeLast()
        if blocks[blocks.count - 1].isEmpty { blocks.removeLast() }
        count -= 1
    }

    private mutating func grow() {
        index = Array(repeating: SessionTable.free, count: index.count * 2)
        for number in 1...UInt32(count) { index[freeSlot(of: recordID(number))] = number }
    }

    private func home(of id: SessionID) -> Int { Int(truncatingIfNeeded: id.hash >> 16) & (index.count - 1) }

    /// The slot of the record, or the free slot where it would be inserted.
    private func slot(of id: SessionID) -> Int {
        var slot = home(of: id)
        while index[slot] != SessionTable.free, recordID(index[slot]) != id {
            slot = (slot + 1) & (index.count - 1)
        }
        return slot
    }

    /// The first free slot for an id that the index does not have. Reads no record.
    private func freeSlot(of id: SessionID) -> Int {
        var slot = home(of: id)
        while index[slot] != SessionTable.free { slot = (slot + 1) & (index.count - 1) }
        return slot
    }

    private func record(_ number: UInt32) -> SessionRecord { entry(number).session }

    /// Reads no more than the id: most records that a search passes are in no processor's cache.
    private func recordID(_ number: UInt32) -> SessionID {
        let place = Int(number) - 1
        return blocks[place / SessionTable.blockCount][place % SessionTable.blockCount].session.id
    }

    private func entry(_ number: UInt32) -> Entry {
        let place = Int(number) - 1
        return blocks[place / SessionTable.blockCount][place % SessionTable.blockCount]
    }

    private mutating func write(_ entry: Entry, as number: UInt32) {
        let place = Int(number) - 1
        blocks[place / SessionTable.blockCount][place % SessionTable.blockCount] = entry
    }
}

/// Secrets by number, from 1, in blocks of fixed size; numbers are used again.
private struct SessionSecretTable {
    private static let blockCount = 64

    private var blocks: [[SessionSecret]] = []
    private var count: UInt32 = 0
    private var free: [UInt32] = []

    subscript(number: UInt32) -> SessionSecret? {
        guard number > 0 else { return nil }
        let place = Int(number) - 1
        return blocks[place / SessionSecretTable.blockCount][place % SessionSecretTable.blockCount]
    }

    /// The number of `secret`, which takes the place of the former one; 0 stands for none.
    mutating func replace(_ former: UInt32, by secret: SessionSecret?) -> UInt32 {
        guard let secret else {
            if former > 0 { free.append(former) }
            return 0
        }
        let number = former > 0 ? former : free.popLast() ?? 0
        guard number > 0 else { return append(secret) }
        let place = Int(number) - 1
        blocks[place / SessionSecretTable.blockCount][place % SessionSecretTable.blockCount] = secret
        return number
    }

    private mutating func append(_ secret: SessionSecret) -> UInt32 {
        if Int(count) % SessionSecretTable.blockCount == 0 {
            blocks.append([])
            blocks[blocks.count - 1].reserveCapacity(SessionSecretTable.blockCount)
        }
        blocks[blocks.count - 1].append(secret)
        count += 1
        return count
    }
}
