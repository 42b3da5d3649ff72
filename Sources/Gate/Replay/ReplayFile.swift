import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc
import Synchronization

/// The replay guard of one machine: a memory-mapped table, so that what was admitted stays admitted across `kill -9`
/// for the price of a memory write. A live entry is never evicted; a full table grows, and at its limit refuses.
///
/// What the table cannot vouch for is refused by the *floor*: signatures made at or before it get `unavailable`. The
/// floor rises over every entry that is dropped, and, where entries may have been lost, over everything that could have
/// been admitted until now.
///
/// Safe to share: the table is touched under a shard's lock, and replaced under all of them.
package final class ReplayFile: ReplayGuard, @unchecked Sendable {
    package struct Settings: Sendable {
        /// Seconds either side of now in which the widest policy finds a signature fresh.
        package var window = 300
        /// Seconds after its creation for which the longest-lived presigned URL is fresh; the window, where that is more.
        /// It lengthens memory only: nothing reaches further ahead of the clock than the window, so the floor that
        /// follows a restart need not either.
        package var lifetime = 0
        /// Entries a new file has room for; it doubles as needed.
        package var entries = 1 << 16
        /// Beyond this it refuses. An entry takes 16 bytes.
        package var mostEntries = 1 << 26
        /// Where the kernel says which boot this is.
        package var bootIDPath = "/proc/sys/kernel/random/boot_id"

        package init() {}
    }

    package let report: OpenReport

    private let path: String
    private let mostBuckets: Int
    private let lockFile: FileDescriptor
    private let hash: KeyedHash
    private let locks = ShardLocks()
    // Both are read under any shard's lock and written under all of them.
    private var table: ReplayTable
    private var retention: Int64
    private let window: Atomic<Int>
    private let lifetime: Atomic<Int>

    /// Opens or makes the file at `path`, for this process alone. `expecting` is the id that the store remembers; `now`
    /// is in whole Unix seconds.
    package init(path: String, expecting: FileID?, settings: Settings = Settings(), now: Int64) throws(Fault) {
        lockFile = try FileDescriptor.locked(path + ".lock", guarding: path)
        let opened = try ReplayOpening(path: path, expecting: expecting, settings: settings, now: now)
        self.path = path
        table = opened.table
        report = opened.report
        hash = KeyedHash(key: opened.table.header.fingerprintKey)
        retention = ReplayFile.retention(for: settings.window, settings.lifetime)
        window = Atomic(settings.window)
        lifetime = Atomic(settings.lifetime)
        mostBuckets = max(settings.mostEntries / ReplayTable.ways, ReplayTable.leastBuckets)
    }

    /// Changes for how long entries are remembered. Widening does not bring back what was dropped; the floor, which
    /// rose when it was, refuses what that could have been.
    package func setWindow(_ seconds: Int, lifetime most: Int = 0, now: Int64) throws(Fault) {
        let before = (window.exchange(seconds, ordering: .relaxed), lifetime.exchange(most, ordering: .relaxed))
        guard before != (seconds, most) else { return }
        try locks.withAll { () throws(Fault) in
            retention = ReplayFile.retention(for: seconds, most)
            table.header.adopt(window: Int64(max(seconds, 0)), now: now)
            try table.synchroniseHeader()
        }
    }

    /// How full the table is, in entries. Those that live are reckoned from a sample: to look at all of a large table
    /// would hold up every request. `now` is in whole Unix seconds.
    package func use(now: Int64) -> (entries: Int, capacity: Int) {
        var use = (entries: 0, capacity: 0)
        locks.withAll {
            use = (table.estimatedEntries(oldest: now - retention), table.bucketCount * ReplayTable.ways)
        }
        return use
    }

    nonisolated(nonsending) package func insert(_ entry: ReplayEntry) async throws(Refusal) { try insertNow(entry) }

    /// The same without a task: nothing here ever waits for more than a lock.
    package func insertNow(_ entry: ReplayEntry) throws(Refusal) {
        guard let created = UInt32(exactly: entry.created), created > 0 else {
            throw Refusal(.stale, "created \(entry.created) is out of the range of the replay table")
        }
        let fingerprint = Fingerprint(entry, hash)
        while true {
            let (outcome, size) = locks.with(fingerprint.shard) {
                (table.insert(fingerprint, created: created, oldest: entry.now - retention), table.bucketCount)
            }
            switch outcome {
            case .inserted: return
            case .present: throw Refusal(.replayed, "scheme \(entry.scheme.rawValue), key \(entry.keyID)")
            case .belowFloor(let floor):
                let wait = floor.subtractingReportingOverflow(entry.now)
                throw Refusal(
                    .unavailable, "created \(created), but replays up to \(floor) cannot be told",
                    retryAfter: wait.overflow ? nil : Int(max(wait.partialValue + 1, 1)))
            case .full: try grow(from: size, now: entry.now)
            }
        }
    }

    /// Doubles the table, unless somebody else just did. The old file stays in place until the new one is whole.
    private func grow(from size: Int, now: Int64) throws(Refusal) {
        try locks.withAll { () throws(Refusal) in
            guard table.bucketCount == size else { return }
            guard size * 2 <= mostBuckets else {
                throw Refusal(
                    .unavailable, "the replay table is full at \(size * ReplayTable.ways) entries", retryAfter: 5)
            }
            do throws(Fault) {
                table = try table.doubled(at: path, oldest: now - retention)
            } catch {
                throw Refusal(.unavailable, "the replay table cannot grow: \(error.message)", retryAfter: 5)
            }
        }
    }

    /// Longer than any window, so that an entry outlives its signature's freshness by more than a slow request takes.
    private static func retention(for window: Int, _ lifetime: Int) -> Int64 { Int64(max(window, lifetime, 0)) + 60 }
}
