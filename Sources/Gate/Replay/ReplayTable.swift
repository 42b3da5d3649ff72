import CLinux
import CountersignWire
import Glibc
import Synchronization

/// The table itself: a header, then rows of 64 buckets, one for each shard, with sixteen records each. A
/// record is two words: the fingerprint, and the creation time with the rest of the fingerprint.
///
/// It grows by linear hashing: each shard has its own number of rows, and growing by one row splits one
/// bucket of that shard in two. A lock is held for one bucket at a time, and the state is one number for each
/// shard in the header, which stays valid if the process is killed. Not thread-safe by itself; ``ReplayFile``
/// holds a shard's lock around each call.
package final class ReplayTable: @unchecked Sendable {
    enum Outcome: Equatable {
        case inserted
        /// Inserted, but the bucket is filling up: the table should soon have at least that many rows.
        case crowded(rows: Int)
        case present
        /// The table cannot tell whether the entry was present before.
        case belowFloor(Int64)
        /// The bucket has sixteen live entries: the table needs that many rows first.
        case full(rows: Int)
    }

    static let ways = 16
    static let recordBytes = 16
    private static let bucketBytes = ways * recordBytes
    private static let cacheLine = 64
    static let rowBytes = ShardLocks.count * bucketBytes
    static let rowEntries = ShardLocks.count * ways
    /// The table grows when a bucket has more live entries than this. A lower threshold would make the table
    /// larger than necessary: the fullest of a million buckets has five times the average number of entries.
    private static let growthThreshold = 14

    package let header: ReplayHeader
    package let file: MappedFile

    private var records: UnsafeMutablePointer<UInt64> {
        (file.start + ReplayHeader.bytes).assumingMemoryBound(to: UInt64.self)
    }

    init(_ mapping: MappedFile) {
        self.file = mapping
        header = ReplayHeader(mapping.start)
    }

    package static func fileBytes(rows: Int) -> Int { ReplayHeader.bytes + rows * rowBytes }

    /// Creates a file without entries. Its blocks are reserved, so that a full disk is an error here and not
    /// a signal later.
    static func create(at path: String, rows: Int, growingTo most: Int) throws(OperationalError)
        -> ReplayTable
    {
        let mapping = try MappedFile(
            creating: path, bytes: fileBytes(rows: rows), growingTo: fileBytes(rows: max(rows, most)))
        let header = ReplayHeader(mapping.start)
        header.begin(rows: rows)
        return ReplayTable(mapping)
    }

    /// Entries created before `oldest` (Unix seconds) are dead: their places are free, and the floor rises
    /// over them.
    func insert(_ fingerprint: ReplayFingerprint, created: UInt32, oldest: Int64) -> Outcome {
        let (bucket, row, rows) = bucket(of: fingerprint)
        var free = -1
        for way in 0..<ReplayTable.ways {
            let word = bucket[way * 2 + 1]
            if isDead(word, before: oldest) {
                if free < 0 { free = way }
            } else if bucket[way * 2] == fingerprint.place,
                UInt32(truncatingIfNeeded: word) == fingerprint.tail
            {
                return .present
            }
        }
        // An entry older than `oldest` is refused like one below the floor: the entry that it may repeat may
        // have been dropped.
        let floor = max(header.floor, header.shardFloor(fingerprint.shard), oldest - 1)
        guard Int64(created) > floor else { return .belowFloor(floor) }
        if let last = header.refusedUntil(Int64(created)) { return .belowFloor(last) }
        guard free >= 0 else { return .full(rows: ReplayTable.rowsAfterSplit(of: row, among: rows)) }
        header.raiseShardFloor(fingerprint.shard, over: bucket[free * 2 + 1] >> 32)
        // The file stays correct if the process is killed at any point here: the floor covers an entry before
        // the entry is dropped, and a record becomes live with its second word, which is written last.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        bucket[free * 2] = fingerprint.place
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        bucket[free * 2 + 1] = UInt64(created) << 32 | UInt64(fingerprint.tail)
        guard free >= ReplayTable.growthThreshold else { return .inserted }
        return .crowded(rows: ReplayTable.rowsAfterSplit(of: row, among: rows))
    }

    /// Fetches the fingerprint's bucket into the processor's cache. Without the shard's lock: the number of
    /// rows may be of a moment ago, and then another bucket is fetched for nothing.
    func prefetch(_ fingerprint: ReplayFingerprint) {
        let start = UnsafeRawPointer(bucket(of: fingerprint).0)
        for offset in stride(from: 0, to: ReplayTable.bucketBytes, by: ReplayTable.cacheLine) {
            cs_prefetch(start + offset)
        }
    }

    /// Whether the entry is present and live.
    func contains(_ fingerprint: ReplayFingerprint, oldest: Int64) -> Bool {
        let (bucket, _, _) = bucket(of: fingerprint)
        for way in 0..<ReplayTable.ways {
            let word = bucket[way * 2 + 1]
            if !isDead(word, before: oldest), bucket[way * 2] == fingerprint.place,
                UInt32(truncatingIfNeeded: word) == fingerprint.tail
            {
                return true
            }
        }
        return false
    }

    /// The creation time of the newest entry in whole Unix seconds; 0 in an empty table. Entries of a refused
    /// interval do not count.
    var newest: Int64 {
        var newest: UInt64 = 0
        let refused = header.refused
        for shard in 0..<ShardLocks.count {
            for row in 0..<header.rows(of: shard) {
                let bucket = bucket(row: row, shard: shard)
                for way in 0..<ReplayTable.ways {
                    let created = bucket[way * 2 + 1] >> 32
                    if created > newest, !refused.contains(Int64(created)) { newest = created }
                }
            }
        }
        return Int64(newest)
    }

    /// The number of live entries in the first rows of a shard, with the number of rows examined.
    func sample(_ shard: Int, oldest: Int64) -> (live: Int, rows: Int) {
        let rows = min(header.rows(of: shard), 16)
        var live = 0
        for row in 0..<rows {
            let bucket = bucket(row: row, shard: shard)
            for way in 0..<ReplayTable.ways where !isDead(bucket[way * 2 + 1], before: oldest) { live += 1 }
        }
        return (live, rows)
    }

    func bucket(row: Int, shard: Int) -> UnsafeMutablePointer<UInt64> {
        records + (row * ShardLocks.count + shard) * ReplayTable.ways * 2
    }

    private func bucket(of fingerprint: ReplayFingerprint) -> (
        UnsafeMutablePointer<UInt64>, row: Int, rows: Int
    ) {
        let rows = header.rows(of: fingerprint.shard)
        let row = ReplayTable.row(of: fingerprint.place, among: rows)
        return (bucket(row: row, shard: fingerprint.shard), row, rows)
    }

    private func isDead(_ word: UInt64, before oldest: Int64) -> Bool {
        Int64(word >> 32) < oldest || word >> 32 == 0
    }

    func synchroniseHeader() throws(OperationalError) { try file.synchronise(bytes: ReplayHeader.bytes) }
}

/// Growth by linear hashing (Litwin, 1980), separately for each shard.
extension ReplayTable {
    /// The largest power of two that is not above `rows`, which is 1 at least.
    private static func round(_ rows: Int) -> Int { 1 << (Int.bitWidth - 1 - rows.leadingZeroBitCount) }

    /// The row of the shard in which a fingerprint lies. The bits that chose the shard are skipped.
    static func row(of place: UInt64, among rows: Int) -> Int {
        let hash = Int(truncatingIfNeeded: place >> 6)
        let round = round(rows)
        let row = hash & (round * 2 - 1)
        return row < rows ? row : hash & (round - 1)
    }

    /// The row whose bucket is split when the shard gets row number `rows`.
    package static func source(of rows: Int) -> Int { rows - round(rows) }

    /// The number of rows of a shard after the bucket of `row` has been split.
    static func rowsAfterSplit(of row: Int, among rows: Int) -> Int {
        let round = round(rows)
        let isSplitInThisRound = row >= round || row + round < rows
        return row + (isSplitInThisRound ? round * 2 : round) + 1
    }

    /// Adds one row to the shard. The caller holds the shard's lock, and the file already contains the bytes
    /// of the row.
    ///
    /// A process may be killed at any point. Before the number of rows is stored, no look-up reads the new
    /// bucket, and the next attempt rewrites all of it. Afterwards, the moved records may still be in the old
    /// bucket as well, where no look-up searches for them; ``removeMoved(_:)`` clears that.
    package func split(_ shard: Int) {
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

    /// Removes from the old bucket the records that the last split moved. The caller holds the shard's lock.
    /// Also called after an owner of the lock died.
    package func removeMoved(_ shard: Int) {
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

    /// The smallest number of rows of any shard.
    var leastRows: Int { (0..<ShardLocks.count).reduce(Int.max) { min($0, header.rows(of: $1)) } }

    /// The largest number of rows of any shard: the file must have room for that many.
    package var mostRows: Int { (0..<ShardLocks.count).reduce(0) { max($0, header.rows(of: $1)) } }
}
