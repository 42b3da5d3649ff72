import CountersignSeal
import CountersignWire
import Glibc
import Synchronization

/// The table itself: a header, then buckets of sixteen records, each two words: fingerprint, and creation time with the
/// rest of the fingerprint. Not safe by itself; ``ReplayFile`` holds a shard's lock around each call.
final class ReplayTable {
    enum Outcome: Equatable {
        case inserted
        case present
        /// The table cannot say whether it was there.
        case belowFloor(Int64)
        /// Sixteen live entries already.
        case full
    }

    static let ways = 16
    static let recordBytes = 16
    /// As many as there are shards, so that a bucket's shard stays the same however the table grows.
    static let leastBuckets = ShardLocks.count

    let header: ReplayHeader
    let bucketCount: Int
    private let mapping: Mapping

    private var records: UnsafeMutablePointer<UInt64> {
        (mapping.start + ReplayHeader.bytes).assumingMemoryBound(to: UInt64.self)
    }

    init(_ mapping: Mapping, bucketCount: Int) {
        self.mapping = mapping
        self.bucketCount = bucketCount
        header = ReplayHeader(mapping.start)
    }

    static func fileBytes(buckets: Int) -> Int { ReplayHeader.bytes + buckets * ways * recordBytes }

    /// Entries created before `oldest` (Unix seconds) are dead: their place is free, and the floor rises over them.
    func insert(_ fingerprint: Fingerprint, created: UInt32, oldest: Int64) -> Outcome {
        let bucket = records + bucketIndex(fingerprint.place) * ReplayTable.ways * 2
        var free = -1
        for way in 0..<ReplayTable.ways {
            let word = bucket[way * 2 + 1]
            if isDead(word, oldest) {
                if free < 0 { free = way }
            } else if bucket[way * 2] == fingerprint.place, UInt32(truncatingIfNeeded: word) == fingerprint.tail {
                return .present
            }
        }
        // Dead on arrival is as unknowable as below the floor: what it could repeat may be gone already.
        let floor = max(header.floor, header.shardFloor(fingerprint.shard), oldest - 1)
        guard Int64(created) > floor else { return .belowFloor(floor) }
        guard free >= 0 else { return .full }
        header.raiseShardFloor(fingerprint.shard, over: bucket[free * 2 + 1] >> 32)
        // Killed at any point between these, the file says the right thing: the floor covers what is dropped before it
        // is dropped, and a record is live only by its second word, which comes last.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        bucket[free * 2] = fingerprint.place
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        bucket[free * 2 + 1] = UInt64(created) << 32 | UInt64(fingerprint.tail)
        return .inserted
    }

    /// A table twice the size with all live entries, in the file's place. An old bucket's entries go to two new ones, so
    /// they fit.
    func doubled(at path: String, oldest: Int64) throws(Fault) -> ReplayTable {
        let place = path + ".growing"
        let larger = try ReplayTable.create(at: place, buckets: bucketCount * 2, like: header)
        for index in 0..<bucketCount * ReplayTable.ways {
            let word = records[index * 2 + 1]
            let fingerprint = Fingerprint(place: records[index * 2], tail: UInt32(truncatingIfNeeded: word))
            if isDead(word, oldest) {
                larger.header.raiseShardFloor(fingerprint.shard, over: word >> 32)
            } else {
                larger.add(fingerprint, word)
            }
        }
        guard rename(place, path) == 0 else {
            let reason = errno
            unlink(place)
            throw Fault.system("rename \(place)", reason)
        }
        return larger
    }

    /// A new file with no entries: the blocks are reserved, so that a full disk is an error here and not a signal later.
    static func create(at path: String, buckets: Int, like model: ReplayHeader?) throws(Fault) -> ReplayTable {
        let mapping = try Mapping(creating: path, bytes: fileBytes(buckets: buckets))
        let header = ReplayHeader(mapping.start)
        if let model { header.copy(model) } else { header.begin() }
        header.seal(buckets: buckets)
        return ReplayTable(mapping, bucketCount: buckets)
    }

    /// When the newest entry was created, whole Unix seconds; 0 where there is none.
    var newest: Int64 {
        var newest: UInt64 = 0
        for index in 0..<bucketCount * ReplayTable.ways { newest = max(newest, records[index * 2 + 1] >> 32) }
        return Int64(newest)
    }

    /// How many entries live, reckoned from the first buckets: a keyed hash spreads entries evenly, so these are like
    /// the others.
    func estimatedEntries(oldest: Int64) -> Int {
        let sampled = min(bucketCount, 1024)
        var live = 0
        for index in 0..<sampled * ReplayTable.ways where !isDead(records[index * 2 + 1], oldest) { live += 1 }
        return live * (bucketCount / sampled)
    }

    private func bucketIndex(_ place: UInt64) -> Int { Int(place & UInt64(bucketCount - 1)) }

    private func isDead(_ word: UInt64, _ oldest: Int64) -> Bool { Int64(word >> 32) < oldest || word >> 32 == 0 }

    private func add(_ fingerprint: Fingerprint, _ word: UInt64) {
        let bucket = records + bucketIndex(fingerprint.place) * ReplayTable.ways * 2
        for way in 0..<ReplayTable.ways where bucket[way * 2 + 1] == 0 {
            bucket[way * 2] = fingerprint.place
            bucket[way * 2 + 1] = word
            return
        }
    }

    func synchroniseHeader() throws(Fault) { try mapping.synchronise(bytes: ReplayHeader.bytes) }
}
