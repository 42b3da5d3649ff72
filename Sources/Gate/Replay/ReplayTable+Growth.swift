import CountersignWire
import Synchronization

/// How the table grows: linear hashing (Litwin, 1980), for each shard by itself.
extension ReplayTable {
    /// The largest power of two that is not above `rows`, which is 1 at least.
    private static func round(_ rows: Int) -> Int { 1 << (Int.bitWidth - 1 - rows.leadingZeroBitCount) }

    /// Which of the shard's rows a fingerprint lies in. The bits that chose the shard are passed over.
    static func row(of place: UInt64, among rows: Int) -> Int {
        let hash = Int(truncatingIfNeeded: place >> 6)
        let round = round(rows)
        let row = hash & (round * 2 - 1)
        return row < rows ? row : hash & (round - 1)
    }

    /// Which bucket is split when the shard gets its row number `rows`.
    static func source(of rows: Int) -> Int { rows - round(rows) }

    /// How many rows a shard has once the bucket of `row` has been split.
    static func rowsAfterSplit(of row: Int, among rows: Int) -> Int {
        let round = round(rows)
        let isSplitInThisRound = row >= round || row + round < rows
        return row + (isSplitInThisRound ? round * 2 : round) + 1
    }

    /// Adds one row to the shard. The file must have its bytes already. With the shard's lock held.
    ///
    /// A process may be killed at any point. Before the number of rows is stored, no look-up reads the new
    /// bucket, and the next attempt writes all of it again. After it, the moved records may still lie in the
    /// old bucket too, where no look-up searches for them; ``removeMoved(_:)`` clears that.
    func split(_ shard: Int) {
        let rows = header.rows(of: shard)
        let old = bucket(row: ReplayTable.source(of: rows), shard: shard)
        let new = bucket(row: rows, shard: shard)
        for way in 0..<ReplayTable.ways {
            let moves = old[way * 2 + 1] != 0 && ReplayTable.row(of: old[way * 2], among: rows + 1) == rows
            new[way * 2] = moves ? old[way * 2] : 0
            new[way * 2 + 1] = moves ? old[way * 2 + 1] : 0
        }
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        header.setRows(of: shard, to: rows + 1)
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        removeMoved(shard)
    }

    /// Clears what the last split moved, from where it was. With the shard's lock held; also after an owner
    /// of the lock died.
    func removeMoved(_ shard: Int) {
        let rows = header.rows(of: shard)
        guard rows > 1 else { return }
        let row = ReplayTable.source(of: rows - 1)
        let bucket = bucket(row: row, shard: shard)
        for way in 0..<ReplayTable.ways where bucket[way * 2 + 1] != 0 {
            guard ReplayTable.row(of: bucket[way * 2], among: rows) != row else { continue }
            bucket[way * 2 + 1] = 0
            bucket[way * 2] = 0
        }
    }

    /// The fewest rows that any shard has.
    var leastRows: Int { (0..<ShardLocks.count).reduce(Int.max) { min($0, header.rows(of: $1)) } }

    /// The most rows that any shard has: the file must have room for so many.
    var mostRows: Int { (0..<ShardLocks.count).reduce(0) { max($0, header.rows(of: $1)) } }
}
