import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc
import Synchronization

/// The replay guard of one machine: a memory-mapped table, whose entries survive `kill -9` at the cost of a
/// memory write. It never evicts a live entry; a full table grows, and at its limit it refuses.
///
/// The *floor* refuses what the table may have forgotten: signatures made at or before it get `unavailable`.
/// The floor rises over every dropped entry and, if entries may have been lost, over everything that could
/// have been admitted until now.
///
/// Two processes may share the file while one replaces the other (``ReplayFileHandover``): the locks are in
/// memory that both have mapped, and the shared state is in the file's header.
///
/// Safe to share: the table is accessed under a shard's lock.
package final class ReplayFile: ReplayGuard, @unchecked Sendable {
    package struct Settings: Sendable {
        /// The widest window of all policies, in seconds either side of now.
        package var window = 300
        /// The longest lifetime of a presigned URL, in seconds after its creation; the window applies if it
        /// is longer. This only lengthens how long entries are kept: no signature is fresh further ahead of
        /// the clock than the window, so the floor after a restart need not be either.
        package var lifetime = 0
        /// Capacity of a new file in entries; the table grows as needed.
        package var entries = 1 << 16
        /// The limit in entries, beyond which the table refuses. An entry takes 16 bytes.
        package var mostEntries = 1 << 26
        /// The file from which the kernel's boot id is read.
        package var bootIDPath = MachineBoot.path

        package init() {}
    }

    package let report: ReplayFileReport

    private let lockFile: FileDescriptor
    /// Whether another process may hold the lock file's descriptor and with it the lock.
    private let isLockShared: Atomic<Bool>
    private let hash: KeyedHash
    package let locks: ShardLocks
    package let table: ReplayTable
    private let grower: ReplayTableGrower
    private let retention: Atomic<Int64>
    private let window: Atomic<Int>
    private let lifetime: Atomic<Int>

    /// Opens or creates the file at `path`, for this process alone or together with the process that it
    /// replaces. `expecting` is the file id from the store; `refused` are the intervals from the store that
    /// are refused whatever the file contains; `now` is in whole Unix seconds.
    package init(
        path: String, expecting: ReplayFileID?, settings: Settings = Settings(),
        refused: TimeIntervals = TimeIntervals(),
        handover: ReplayFileHandover? = nil, now: Int64
    ) throws(OperationalError) {
        isLockShared = Atomic(handover != nil)
        if let handover {
            lockFile = handover.lockFile
            lockFile.noteThisProcess()
            locks = ShardLocks(sharing: try SharedMemory(sharing: handover.locks, bytes: ShardLocks.bytes))
        } else {
            lockFile = try FileDescriptor.locked(path + ".lock", guarding: path)
            locks = ShardLocks(makingIn: SharedMemory("countersign-replay-locks", bytes: ShardLocks.bytes))
        }
        let mostRows = max(settings.mostEntries / ReplayTable.rowEntries, 1)
        let opened = try ReplayFileOpener(
            path: path, expecting: expecting, settings: settings, mostRows: mostRows,
            isShared: handover != nil,
            refused: refused, now: now)
        table = opened.table
        report = opened.report
        hash = KeyedHash(key: opened.table.header.fingerprintKey)
        retention = Atomic(ReplayFile.retention(window: settings.window, lifetime: settings.lifetime))
        window = Atomic(settings.window)
        lifetime = Atomic(settings.lifetime)
        grower = ReplayTableGrower(table, locks: locks, mostRows: mostRows)
        noteClock(now)
    }

    deinit {
        grower.stop()
        // A forked child that has not yet executed a program has a copy of the descriptor, which would keep
        // the lock after this process closes its own.
        if !isLockShared.load(ordering: .relaxed) { lockFile.unlock() }
    }

    /// What another process needs to share the file; nil if this process's locks cannot be shared. Source:
    /// docs/decisions/0034-restart.md.
    package var handover: ReplayFileHandover? {
        locks.memory.descriptor.map { locks in
            isLockShared.store(true, ordering: .relaxed)
            return ReplayFileHandover(lockFile: lockFile, locks: locks)
        }
    }

    /// Changes how long entries are kept. Widening does not restore dropped entries; the floor rose when they
    /// were dropped and refuses their signatures. A timer calls this: it also renews the clock's period.
    package func setWindow(_ seconds: Int, lifetime most: Int = 0, now: Int64) throws(OperationalError) {
        if now < table.header.period.start || now > table.header.period.end - ReplayClock.renewal {
            noteClock(now)
        }
        let before = (
            window.exchange(seconds, ordering: .relaxed), lifetime.exchange(most, ordering: .relaxed)
        )
        guard before != (seconds, most) else { return }
        locks.withAllLocks(repair: table.removeMoved) {
            retention.store(ReplayFile.retention(window: seconds, lifetime: most), ordering: .relaxed)
            table.header.adopt(window: Int64(max(seconds, 0)), lifetime: Int64(max(most, 0)), now: now)
        }
        try table.synchroniseHeader()
    }

    /// The live entries and the capacity of the table. The number of live entries is estimated from a sample,
    /// one shard after the other: counting all of a large table would delay requests. `now` is in whole Unix
    /// seconds.
    package func usage(now: Int64) -> (entries: Int, capacity: Int) {
        let oldest = now - retention.load(ordering: .relaxed)
        var use = (entries: 0, capacity: 0)
        for shard in 0..<ShardLocks.count {
            let (sample, rows) = locks.withLock(of: shard, repair: table.removeMoved) {
                (table.sample(shard, oldest: oldest), table.header.rows(of: shard))
            }
            use.entries += sample.live * rows / max(sample.rows, 1)
            use.capacity += rows * ReplayTable.ways
        }
        return use
    }

    package func insert(_ entry: ReplayEntry) async throws(Refusal) {
        guard let rows = try insertIfRoom(entry) else { return }
        try await insert(entry, growingTo: rows)
    }

    package func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool {
        try insertIfRoom(entry) == nil
    }

    package func lookUp(_ entry: ReplayEntry) throws(Refusal) {
        let fingerprint = fingerprint(of: entry)
        let oldest = entry.now - retention.load(ordering: .relaxed)
        let isIn = locks.withLock(of: fingerprint.shard, repair: table.removeMoved) {
            table.contains(fingerprint, oldest: oldest)
        }
        if isIn { throw Refusal(.replayed, detail: "scheme \(entry.scheme.rawValue), key \(entry.keyID)") }
    }

    package func prefetch(_ entry: ReplayEntry) -> ReplayFingerprint? {
        let fingerprint = ReplayFingerprint(of: entry, hash: hash)
        table.prefetch(fingerprint)
        return fingerprint
    }

    private func fingerprint(of entry: ReplayEntry) -> ReplayFingerprint {
        guard let known = entry.fingerprint else { return ReplayFingerprint(of: entry, hash: hash) }
        assert(known == ReplayFingerprint(of: entry, hash: hash), "the fingerprint of another entry")
        return known
    }

    /// The rare case of ``insert(_:)`` in which the bucket is full because the table did not grow in time.
    private func insert(_ entry: ReplayEntry, growingTo first: Int) async throws(Refusal) {
        var rows = first
        for _ in 0..<ReplayFile.mostGrowths {
            try await grower.waitForGrowth(toRows: rows)
            guard let more = try insertIfRoom(entry) else { return }
            rows = more
        }
        throw Refusal(.unavailable, detail: "the replay table grows too slowly", retryAfter: 1)
    }

    /// The same for tools and tests: if the table must grow, the calling thread waits for the disk.
    package func insertNow(_ entry: ReplayEntry) throws(Refusal) {
        while let rows = try insertIfRoom(entry) { try grower.growNow(toRows: rows) }
    }

    /// Nil if the entry was inserted; otherwise the number of rows that the table needs first.
    private func insertIfRoom(_ entry: ReplayEntry) throws(Refusal) -> Int? {
        guard let created = UInt32(exactly: entry.created), created > 0 else {
            throw Refusal(.stale, detail: "created \(entry.created) is out of the range of the replay table")
        }
        if !table.header.covers(entry.now) { noteClock(entry.now) }
        let fingerprint = fingerprint(of: entry)
        let oldest = entry.now - retention.load(ordering: .relaxed)
        let outcome = locks.withLock(of: fingerprint.shard, repair: table.removeMoved) {
            table.insert(fingerprint, created: created, oldest: oldest)
        }
        switch outcome {
        case .inserted: return nil
        case .crowded(let rows):
            grower.requestGrowth(toRows: rows)
            return nil
        case .present: throw Refusal(.replayed, detail: "scheme \(entry.scheme.rawValue), key \(entry.keyID)")
        case .belowFloor(let floor):
            let wait = floor.subtractingReportingOverflow(entry.now)
            throw Refusal(
                .unavailable, detail: "created \(created), but replays up to \(floor) cannot be told",
                retryAfter: wait.overflow ? nil : Int(max(wait.partialValue + 1, 1)))
        case .full(let rows): return rows
        }
    }

    /// The most splits that an insertion waits for: a split may leave all entries in the same bucket.
    private static let mostGrowths = 16

    /// Longer than any window, so that an entry is kept beyond its signature's freshness by more than the
    /// time of a slow request.
    private static func retention(window: Int, lifetime: Int) -> Int64 {
        Int64(max(window, lifetime, 0)) + 60
    }
}

/// The descriptors that a process passes to its replacement, so that both use one replay file.
package struct ReplayFileHandover: Sendable {
    /// The descriptor that holds the file's lock: because it is passed on, no third process can open the file
    /// in between.
    package let lockFile: FileDescriptor
    /// The memory of the table's locks.
    package let locks: FileDescriptor

    package init(lockFile: FileDescriptor, locks: FileDescriptor) {
        self.lockFile = lockFile
        self.locks = locks
    }
}
