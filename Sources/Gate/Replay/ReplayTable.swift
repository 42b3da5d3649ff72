import CountersignWire
import Glibc
import Synchronization

/// The table itself: a header, then rows of 64 buckets, one for each shard, of sixteen records each. A record
/// is two words: the fingerprint, and the creation time with the rest of the fingerprint.
///
/// It grows by linear hashing: each shard has a number of rows of its own, and growing by one row splits one
/// bucket of that shard in two. So a lock is held for one bucket, and the state is one number a shard, in the
/// header, which a process that is killed leaves valid. Not safe by itself; ``ReplayFile`` holds a shard's
/// lock around each call.
final class ReplayTable: @unchecked Sendable {
    enum Outcome: Equatable {
        case inserted
        /// In, and the bucket fills up: the table should have at least so many rows soon.
        case crowded(rows: Int)
        case present
        /// The table cannot say whether it was there.
        case belowFloor(Int64)
        /// Sixteen live entries already: the table needs so many rows first.
        case full(rows: Int)
    }

    static let ways = 16
    static let recordBytes = 16
    static let rowBytes = ShardLocks.count * ways * recordBytes
    static let rowEntries = ShardLocks.count * ways
    /// Live entries of a bucket beyond which the table grows. With fewer it would be larger than it needs to be: of a
    /// million buckets the fullest has five times as many as they have on average.
    private static let crowd = 14

    let header: ReplayHeader
    let mapping: Mapping

    private var records: UnsafeMutablePointer<UInt64> {
        (mapping.start + ReplayHeader.bytes).assumingMemoryBound(to: UInt64.self)
    }

    init(_ mapping: Mapping) {
        self.mapping = mapping
        header = ReplayHeader(mapping.start)
    }

    static func fileBytes(rows: Int) -> Int { ReplayHeader.bytes + rows * rowBytes }

    /// A new file with no entries: the blocks are reserved, so that a full disk is an error here and not a
    /// signal later.
    static func create(at path: String, rows: Int, growingTo most: Int) throws(Fault) -> ReplayTable {
        let mapping = try Mapping(
            creating: path, bytes: fileBytes(rows: rows), growingTo: fileBytes(rows: max(rows, most)))
        let header = ReplayHeader(mapping.start)
        header.begin(rows: rows)
        return ReplayTable(mapping)
    }

    /// Entries created before `oldest` (Unix seconds) are dead: their place is free, and the floor rises over them.
    func insert(_ fingerprint: Fingerprint, created: UInt32, oldest: Int64) -> Outcome {
        let (bucket, row, rows) = bucket(of: fingerprint)
        var free = -1
        for way in 0..<ReplayTable.ways {
            let word = bucket[way * 2 + 1]
            if isDead(word, before: oldest) {
                if free < 0 { free = way }
            } else if bucket[way * 2] == fingerprint.place, UInt32(truncatingIfNeeded: word) == fingerprint.tail {
                return .present
            }
        }
        // Dead on arrival is as unknowable as below the floor: what it could repeat may be gone already.
        let floor = max(header.floor, header.shardFloor(fingerprint.shard), oldest - 1)
        guard Int64(created) > floor else { return .belowFloor(floor) }
        if let last = header.refusedUntil(Int64(created)) { return .belowFloor(last) }
        guard free >= 0 else { return .full(rows: ReplayTable.rowsAfterSplit(of: row, among: rows)) }
        header.raiseShardFloor(fingerprint.shard, over: bucket[free * 2 + 1] >> 32)
        // Killed at any point between these, the file says the right thing: the floor covers what is dropped before it
        // is dropped, and a record is live only by its second word, which comes last.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        bucket[free * 2] = fingerprint.place
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        bucket[free * 2 + 1] = UInt64(created) << 32 | UInt64(fingerprint.tail)
        guard free >= ReplayTable.crowd else { return .inserted }
        return .crowded(rows: ReplayTable.rowsAfterSplit(of: row, among: rows))
    }

    /// Whether that entry is in, and live.
    func contains(_ fingerprint: Fingerprint, oldest: Int64) -> Bool {
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

    /// When the newest entry was created, whole Unix seconds; 0 in an empty table. Entries of a refused interval do not
    /// count.
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

    /// Live entries in the first rows of a shard, with the number of rows that were looked at.
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

    private func bucket(of fingerprint: Fingerprint) -> (UnsafeMutablePointer<UInt64>, row: Int, rows: Int) {
        let rows = header.rows(of: fingerprint.shard)
        let row = ReplayTable.row(of: fingerprint.place, among: rows)
        return (bucket(row: row, shard: fingerprint.shard), row, rows)
    }

    private func isDead(_ word: UInt64, before oldest: Int64) -> Bool { Int64(word >> 32) < oldest || word >> 32 == 0 }

    func synchroniseHeader() throws(Fault) { try mapping.synchronise(bytes: ReplayHeader.bytes) }
}
