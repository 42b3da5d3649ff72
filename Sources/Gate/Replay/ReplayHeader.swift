import CountersignSeal
import CountersignWire
import Glibc
import Synchronization

/// The first page of a replay file, seen through a pointer into its mapping.
///
///     0 magic · 8 version · 16 rows at first × 64 · 24 fingerprint key · 40 file id · 56 SHA-256 of all that
///     96 floor · 104 boot id · 144 window · 152 horizon
///     160 start and 168 end of the present clock period · 176 first refused second
///     184 number of the confirmation · 192 widest window and 200 longest reach back that ever were
///     256 clock periods (8 × start, end) · 384 refused intervals (8 × first, last)
///     512 the floor of each shard · 1024 the rows of each shard
///
/// A file written before a field existed has zeros there, which mean "none".
package struct ReplayHeader {
    static let bytes = 4096
    static let version: UInt64 = 1
    /// `CSREPLAY`.
    private static let magic: UInt64 = 0x5941_4C50_4552_5343

    private let start: UnsafeMutableRawPointer

    init(_ start: UnsafeMutableRawPointer) { self.start = start }

    /// The widest window, in seconds, that the replay file at `path` was ever used with. Changes nothing; nil
    /// if there is no such file, or it is damaged.
    package static func widestWindow(inFileAt path: String) -> Int64? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let page = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 16)
        defer { page.deallocate() }
        guard pread(file, page, bytes, 0) == bytes else { return nil }
        let header = ReplayHeader(page)
        guard header.isWhole(size: Int(status.st_size)) else { return nil }
        return max(header.window, header.widestWindow)
    }

    /// Writes the header of a new file; the rest is zeros.
    func begin(rows: Int) {
        start.storeBytes(of: ReplayHeader.magic, toByteOffset: 0, as: UInt64.self)
        start.storeBytes(of: ReplayHeader.version, toByteOffset: 8, as: UInt64.self)
        start.storeBytes(of: UInt64(rows * ShardLocks.count), toByteOffset: 16, as: UInt64.self)
        let random = SystemRandom().bytes(32)
        for index in 0..<32 { start.storeBytes(of: random[index], toByteOffset: 24 + index, as: UInt8.self) }
        let digest = checksum()
        for index in 0..<32 { start.storeBytes(of: digest[index], toByteOffset: 56 + index, as: UInt8.self) }
        for shard in 0..<ShardLocks.count { setRows(of: shard, to: rows) }
    }

    /// Whether this is an undamaged replay header in a file of `size` bytes. Stores the number of rows in a
    /// file written before tables grew by rows.
    func isWhole(size: Int) -> Bool {
        guard size >= ReplayHeader.bytes, start.load(as: UInt64.self) == ReplayHeader.magic,
            start.load(fromByteOffset: 8, as: UInt64.self) == ReplayHeader.version
        else { return false }
        let digest = checksum()
        for index in 0..<32 where digest[index] != start.load(fromByteOffset: 56 + index, as: UInt8.self) {
            return false
        }
        let buckets = Int(exactly: start.load(fromByteOffset: 16, as: UInt64.self)) ?? 0
        guard buckets >= ShardLocks.count, buckets <= 1 << 40, buckets & (buckets - 1) == 0 else {
            return false
        }
        let room = (size - ReplayHeader.bytes) / ReplayTable.rowBytes
        for shard in 0..<ShardLocks.count {
            if rows(of: shard) == 0 { setRows(of: shard, to: buckets / ShardLocks.count) }
            guard rows(of: shard) >= 1, rows(of: shard) <= room else { return false }
        }
        return true
    }

    /// How many rows of buckets a shard has.
    /// Atomic, because ``ReplayTable/prefetch(_:)`` reads it without the shard's lock.
    package func rows(of shard: Int) -> Int { rowCount(of: shard).pointee.load(ordering: .relaxed) }

    func setRows(of shard: Int, to rows: Int) { rowCount(of: shard).pointee.store(rows, ordering: .relaxed) }

    private func rowCount(of shard: Int) -> UnsafeMutablePointer<Atomic<Int>> {
        (start + (1024 + shard * 8)).assumingMemoryBound(to: Atomic<Int>.self)
    }

    private func checksum() -> Digest32 {
        SHA256.digest(Span(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: 56)))
    }

    var fingerprintKey: KeyedHash.Key {
        KeyedHash.Key { start.load(fromByteOffset: 24 + $0, as: UInt8.self) }
    }

    var fileID: ReplayFileID {
        ReplayFileID(start.loadUnaligned(fromByteOffset: 40, as: InlineArray<16, UInt8>.self))
    }

    /// Signatures made at or before this time (Unix seconds) are refused; 0 for no bound.
    var floor: Int64 {
        get { start.load(fromByteOffset: 96, as: Int64.self) }
        nonmutating set { start.storeBytes(of: newValue, toByteOffset: 96, as: Int64.self) }
    }

    /// 36 characters, as the kernel writes it.
    var bootID: [UInt8] {
        get { (0..<36).map { start.load(fromByteOffset: 104 + $0, as: UInt8.self) } }
        nonmutating set {
            for index in 0..<36 {
                let byte = index < newValue.count ? newValue[index] : 0
                start.storeBytes(of: byte, toByteOffset: 104 + index, as: UInt8.self)
            }
        }
    }

    /// Stores the widest window of the current policies and the longest lifetime of a presigned URL, in
    /// seconds. If the window was wider before, admitted signatures may lie further ahead than the new
    /// window: the horizon records how far.
    func adopt(window: Int64, lifetime: Int64, now: Int64) {
        let previous = load(144)
        if previous > window {
            let (reach, overflow) = now.addingReportingOverflow(previous)
            store(max(horizon, overflow ? Int64.max : reach), at: 152)
        }
        store(window, at: 144)
        store(max(widestWindow, window), at: 192)
        store(max(longestReach, window, lifetime), at: 200)
    }

    var window: Int64 { load(144) }

    /// The widest window and the longest lifetime ever stored: how far ahead of the clock, and how far behind
    /// it, an admitted signature can have been made.
    var widestWindow: Int64 { load(192) }
    var longestReach: Int64 { load(200) }

    /// No signature later than this time (Unix seconds) was admitted under a window wider than the current
    /// one.
    var horizon: Int64 { start.load(fromByteOffset: 152, as: Int64.self) }

    func lowerHorizon(to time: Int64) { store(min(horizon, time), at: 152) }

    // MARK: The clock

    /// The clock period in which requests are currently admitted; see ``ReplayClock``.
    var period: (start: Int64, end: Int64) {
        get { (load(160), load(168)) }
        nonmutating set {
            // Readers hold no lock, so the period must at no moment be wider than its old or new value. A
            // start of `Int64.max` makes it empty while it changes.
            store(Int64.max, at: 160)
            store(newValue.end, at: 168)
            store(newValue.start, at: 160)
        }
    }

    @inline(__always)
    func covers(_ now: Int64) -> Bool { now >= load(160) && now <= load(168) }

    /// The number of the last clock confirmation that was applied.
    var confirmation: Int64 {
        get { load(184) }
        nonmutating set { store(newValue, at: 184) }
    }

    var periods: TimeIntervals {
        get { intervals(256) }
        nonmutating set { storeIntervals(newValue, at: 256) }
    }

    /// Creation times that are refused regardless of the floor, because requests were admitted then under a
    /// wrong clock.
    var refused: TimeIntervals {
        get { intervals(384) }
        nonmutating set {
            storeIntervals(newValue, at: 384)
            store(newValue.all.first?.first ?? 0, at: 176)
        }
    }

    /// The last second of the refused interval that contains the time; nil if none does. Without refused
    /// intervals this costs one comparison.
    @inline(__always)
    func refusedUntil(_ created: Int64) -> Int64? {
        let first = load(176)
        guard first != 0, created >= first else { return nil }
        return intervals(384).interval(containing: created)?.last
    }

    private func intervals(_ offset: Int) -> TimeIntervals {
        var intervals = TimeIntervals()
        for index in 0..<TimeIntervals.most {
            let (first, last) = (load(offset + index * 16), load(offset + index * 16 + 8))
            if last != 0, first <= last { intervals.add(first: first, last: last) }
        }
        return intervals
    }

    private func storeIntervals(_ intervals: TimeIntervals, at offset: Int) {
        for index in 0..<TimeIntervals.most {
            let interval = index < intervals.all.count ? intervals.all[index] : nil
            store(0, at: offset + index * 16 + 8)
            store(interval?.first ?? 0, at: offset + index * 16)
            store(interval?.last ?? 0, at: offset + index * 16 + 8)
        }
    }

    private func load(_ offset: Int) -> Int64 { start.load(fromByteOffset: offset, as: Int64.self) }

    private func store(_ value: Int64, at offset: Int) {
        start.storeBytes(of: value, toByteOffset: offset, as: Int64.self)
    }

    // MARK: Shards

    /// The creation time of the newest entry that this shard has dropped.
    func shardFloor(_ shard: Int) -> Int64 { start.load(fromByteOffset: 512 + shard * 8, as: Int64.self) }

    func raiseShardFloor(_ shard: Int, over created: UInt64) {
        let created = Int64(truncatingIfNeeded: created)
        if created > shardFloor(shard) {
            start.storeBytes(of: created, toByteOffset: 512 + shard * 8, as: Int64.self)
        }
    }

    func lowerShardFloors(to time: Int64) {
        for shard in 0..<ShardLocks.count where shardFloor(shard) > time {
            start.storeBytes(of: time, toByteOffset: 512 + shard * 8, as: Int64.self)
        }
    }
}
