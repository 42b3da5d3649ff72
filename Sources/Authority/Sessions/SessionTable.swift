import CountersignWire

/// Sessions by their id: open addressing over record numbers; the records lie in blocks of fixed size. Ids
/// are random, so their own bits serve as the hash.
struct SessionTable {
    private static let blockCount = 256
    private static let free: UInt32 = 0

    private var blocks: [[SessionRecord]] = []
    private(set) var count = 0
    private(set) var endedCount = 0
    /// Record numbers from 1; 0 marks a free slot. The size is a power of two, and at most half of the
    /// slots are used.
    private var index: [UInt32] = Array(repeating: SessionTable.free, count: 64)

    func find(_ id: SessionID) -> SessionRecord? {
        let slot = slot(of: id)
        return index[slot] == SessionTable.free ? nil : record(index[slot])
    }

    /// Inserts the record, or replaces the one with the same id.
    mutating func put(_ session: SessionRecord) {
        let slot = slot(of: session.id)
        if session.isEnded { endedCount += 1 }
        guard index[slot] == SessionTable.free else {
            if record(index[slot]).isEnded { endedCount -= 1 }
            return write(session, as: index[slot])
        }
        if blocks.last.map({ $0.count == SessionTable.blockCount }) ?? true {
            blocks.append([])
            blocks[blocks.count - 1].reserveCapacity(SessionTable.blockCount)
        }
        blocks[blocks.count - 1].append(session)
        count += 1
        index[slot] = UInt32(count)
        if count * 2 > index.count { grow() }
    }

    mutating func remove(_ id: SessionID) {
        var hole = slot(of: id)
        let number = index[hole]
        guard number != SessionTable.free else { return }
        if record(number).isEnded { endedCount -= 1 }
        // Later entries of the probe sequence move up, or a search would end at the hole.
        var next = hole
        while true {
            next = (next + 1) & (index.count - 1)
            guard index[next] != SessionTable.free else { break }
            let home = home(of: record(index[next]).id)
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
            let moved = record(last)
            index[slot(of: moved.id)] = number
            write(moved, as: number)
        }
        blocks[blocks.count - 1].removeLast()
        if blocks[blocks.count - 1].isEmpty { blocks.removeLast() }
        count -= 1
    }

    private mutating func grow() {
        index = Array(repeating: SessionTable.free, count: index.count * 2)
        for number in 1...UInt32(count) { index[slot(of: record(number).id)] = number }
    }

    private func home(of id: SessionID) -> Int { Int(truncatingIfNeeded: id.hash >> 16) & (index.count - 1) }

    /// The slot of the record, or the free slot where it would be inserted.
    private func slot(of id: SessionID) -> Int {
        var slot = home(of: id)
        while index[slot] != SessionTable.free, record(index[slot]).id != id {
            slot = (slot + 1) & (index.count - 1)
        }
        return slot
    }

    private func record(_ number: UInt32) -> SessionRecord {
        let place = Int(number) - 1
        return blocks[place / SessionTable.blockCount][place % SessionTable.blockCount]
    }

    private mutating func write(_ session: SessionRecord, as number: UInt32) {
        let place = Int(number) - 1
        blocks[place / SessionTable.blockCount][place % SessionTable.blockCount] = session
    }
}
