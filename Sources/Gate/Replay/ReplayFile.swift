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
/// Two processes may share the file while one takes over from the other (``ReplaySharing``): its locks are in
/// memory that both have mapped, and all that they agree on is in the file's header.
///
/// Safe to share: the table is touched under a shard's lock.
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

    private let lockFile: FileDescriptor
    private let hash: KeyedHash
    let locks: ShardLocks
    let table: ReplayTable
    private let grower: ReplayGrower
    private let retention: Atomic<Int64>
    private let window: Atomic<Int>
    private let lifetime: Atomic<Int>

    /// Opens or makes the file at `path`, for this process alone, or together with the one that it takes over
    /// from. `expecting` is the id that the store remembers, `refused` what it remembers to be refused
    /// whatever the file says; `now` is in whole Unix seconds.
    package init(
        path: String, expecting: FileID?, settings: Settings = Settings(), refused: Intervals = Intervals(),
        sharing: ReplaySharing? = nil, now: Int64
    ) throws(Fault) {
        if let sharing {
            lockFile = sharing.lockFile
            locks = ShardLocks(sharing: try SharedMemory(sharing: sharing.locks, bytes: ShardLocks.bytes))
        } else {
            lockFile = try FileDescriptor.locked(path + ".lock", guarding: path)
            locks = ShardLocks(makingIn: SharedMemory("countersign-replay-locks", bytes: ShardLocks.bytes))
        }
        let mostRows = max(settings.mostEntries / ReplayTable.rowEntries, 1)
        let opened = try ReplayOpening(
            path: path, expecting: expecting, settings: settings, mostRows: mostRows, isShared: sharing != nil,
            refused: refused, now: now)
        table = opened.table
        report = opened.report
        hash = KeyedHash(key: opened.table.header.fingerprintKey)
        retention = Atomic(ReplayFile.retention(for: settings.window, settings.lifetime))
        window = Atomic(settings.window)
        lifetime = Atomic(settings.lifetime)
        grower = ReplayGrower(table, locks: locks, mostRows: mostRows)
        noteClock(now)
    }

    deinit { grower.stop() }

    /// What another process needs to share the file; nil where this one's locks cannot be shared. Source:
    /// docs/decisions/0034-restart.md.
    package var sharing: ReplaySharing? {
        locks.memory.descriptor.map { ReplaySharing(lockFile: lockFile, locks: $0) }
    }

    /// Changes for how long entries are remembered. Widening does not bring back what was dropped; the floor, which
    /// rose when it was, refuses what that could have been. For a timer: it also renews the clock's period.
    package func setWindow(_ seconds: Int, lifetime most: Int = 0, now: Int64) throws(Fault) {
        if now < table.header.period.start || now > table.header.period.end - ReplayClock.renewal { noteClock(now) }
        let before = (window.exchange(seconds, ordering: .relaxed), lifetime.exchange(most, ordering: .relaxed))
        guard before != (seconds, most) else { return }
        locks.withAll(repair: table.removeMoved) {
            retention.store(ReplayFile.retention(for: seconds, most), ordering: .relaxed)
            table.header.adopt(window: Int64(max(seconds, 0)), lifetime: Int64(max(most, 0)), now: now)
        }
        try table.synchroniseHeader()
    }

    /// How full the table is, in entries. Those that live are estimated from a sample, one shard after the
    /// other: to look at all of a large table would hold up requests. `now` is in whole Unix seconds.
    package func use(now: Int64) -> (entries: Int, capacity: Int) {
        let oldest = now - retention.load(ordering: .relaxed)
        var use = (entries: 0, capacity: 0)
        for shard in 0..<ShardLocks.count {
            let (sample, rows) = locks.with(shard, repair: table.removeMoved) {
                (table.sample(shard, oldest: oldest), table.header.rows(of: shard))
            }
            use.entries += sample.live * rows / max(sample.rows, 1)
            use.capacity += rows * ReplayTable.ways
        }
        return use
    }

    nonisolated(nonsending) package func insert(_ entry: ReplayEntry) async throws(Refusal) {
        guard let rows = try insertIfRoom(entry) else { return }
        try await insert(entry, growingTo: rows)
    }

    nonisolated(nonsending) package func lookUp(_ entry: ReplayEntry) async throws(Refusal) {
        let fingerprint = Fingerprint(entry, hash)
        let oldest = entry.now - retention.load(ordering: .relaxed)
        let isIn = locks.with(fingerprint.shard, repair: table.removeMoved) {
            table.contains(fingerprint, oldest: oldest)
        }
        if isIn { throw Refusal(.replayed, "scheme \(entry.scheme.rawValue), key \(entry.keyID)") }
    }

    /// The rare case of ``insert(_:)``: its bucket is full, and the table did not grow ahead of it.
    nonisolated(nonsending) private func insert(_ entry: ReplayEntry, growingTo first: Int) async throws(Refusal) {
        var rows = first
        for _ in 0..<ReplayFile.mostGrowths {
            if let failure = await grower.grown(to: rows) { throw ReplayFile.refusal(failure) }
            guard let more = try insertIfRoom(entry) else { return }
            rows = more
        }
        throw Refusal(.unavailable, "the replay table grows too slowly", retryAfter: 1)
    }

    /// The same for tools and tests: where the table has to grow, the calling thread waits for the disk.
    package func insertNow(_ entry: ReplayEntry) throws(Refusal) {
        while let rows = try insertIfRoom(entry) {
            if let failure = grower.growNow(to: rows) { throw ReplayFile.refusal(failure) }
        }
    }

    /// Nil where the entry is in; else how many rows the table needs first.
    private func insertIfRoom(_ entry: ReplayEntry) throws(Refusal) -> Int? {
        guard let created = UInt32(exactly: entry.created), created > 0 else {
            throw Refusal(.stale, "created \(entry.created) is out of the range of the replay table")
        }
        if !table.header.covers(entry.now) { noteClock(entry.now) }
        let fingerprint = Fingerprint(entry, hash)
        let oldest = entry.now - retention.load(ordering: .relaxed)
        let outcome = locks.with(fingerprint.shard, repair: table.removeMoved) {
            table.insert(fingerprint, created: created, oldest: oldest)
        }
        switch outcome {
        case .inserted: return nil
        case .crowded(let rows):
            grower.want(rows: rows)
            return nil
        case .present: throw Refusal(.replayed, "scheme \(entry.scheme.rawValue), key \(entry.keyID)")
        case .belowFloor(let floor):
            let wait = floor.subtractingReportingOverflow(entry.now)
            throw Refusal(
                .unavailable, "created \(created), but replays up to \(floor) cannot be told",
                retryAfter: wait.overflow ? nil : Int(max(wait.partialValue + 1, 1)))
        case .full(let rows): return rows
        }
    }

    /// Splits of one bucket that an insertion waits for: its entries can all fall on the same side.
    private static let mostGrowths = 16

    private static func refusal(_ failure: ReplayGrower.Failure) -> Refusal {
        switch failure {
        case .limit(let entries):
            Refusal(.unavailable, "the replay table is full at \(entries) entries", retryAfter: 5)
        case .fault(let message):
            Refusal(.unavailable, "the replay table cannot grow: \(message)", retryAfter: 5)
        }
    }

    /// Longer than any window, so that an entry outlives its signature's freshness by more than a slow request takes.
    private static func retention(for window: Int, _ lifetime: Int) -> Int64 { Int64(max(window, lifetime, 0)) + 60 }
}

/// What a process hands to the one that takes over from it, so that both use one replay file.
package struct ReplaySharing: Sendable {
    /// Holds the file's lock: with it passed on, no third process can open the file in between.
    package let lockFile: FileDescriptor
    /// The memory of the table's locks.
    package let locks: FileDescriptor

    package init(lockFile: FileDescriptor, locks: FileDescriptor) {
        self.lockFile = lockFile
        self.locks = locks
    }
}
