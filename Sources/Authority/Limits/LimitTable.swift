import CountersignGate
import CountersignSeal
import Synchronization

/// A token bucket: how many attempts may come at once, and how fast the allowance refills.
package struct RateLimit: Sendable, Equatable {
    /// Attempts that a full allowance holds, at least 1.
    package let burst: Int
    /// Milliseconds in which one attempt is refilled.
    package let interval: Int64
    /// Milliseconds by which refused attempts may delay the next allowed one: each adds a quarter of an
    /// interval to the wait, up to this bound. 0: a refused attempt costs nothing.
    package let mostDebt: Int64

    package init(burst: Int, refillInterval interval: Duration, mostDebt: Duration = .zero) {
        self.init(
            burst: burst, interval: RateLimit.milliseconds(interval),
            mostDebt: RateLimit.milliseconds(mostDebt))
    }

    /// With an interval in the unit of the times that the table is given, where that is not the millisecond.
    package init(burst: Int, interval: Int64) { self.init(burst: burst, interval: interval, mostDebt: 0) }

    private init(burst: Int, interval: Int64, mostDebt: Int64) {
        self.burst = min(max(burst, 1), 1_000_000)
        self.interval = max(interval, 1)
        self.mostDebt = mostDebt
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return min(max(seconds, 0), 86_400) * 1000 + attoseconds / 1_000_000_000_000_000
    }

    /// The same limit that also charges refused attempts.
    package func charging(refusalsUpTo debt: Duration) -> RateLimit {
        RateLimit(burst: burst, interval: interval, mostDebt: RateLimit.milliseconds(debt))
    }

    /// `numerator`/`denominator` times as many attempts at once, and as fast a refill.
    func scaled(by numerator: Int, over denominator: Int) -> RateLimit {
        RateLimit(
            burst: (burst * numerator + denominator - 1) / denominator,
            interval: interval * Int64(denominator) / Int64(numerator), mostDebt: mostDebt)
    }

    /// `numerator`/`denominator` times as many attempts at once, and a refill `times` as fast.
    func scaled(by numerator: Int, over denominator: Int, refilling times: Int) -> RateLimit {
        RateLimit(
            burst: scaled(by: numerator, over: denominator).burst, interval: interval / Int64(times),
            mostDebt: mostDebt)
    }

    /// The time that a refused attempt adds to the wait: a quarter of an interval. A caller that retries once
    /// an interval is admitted; one that retries four times as often never is.
    var refusalCharge: Int64 { max(interval / 4, 1) }

    /// Milliseconds in which an empty allowance becomes full.
    var fullRefill: Int64 { Int64(burst) * interval }
}

/// Counts attempts by key, in memory of fixed size. Times are arguments: milliseconds since 1970.
///
/// For each key the table keeps one number: the time when its allowance will be full. An attempt adds one
/// interval to it, and is allowed while the time lies within `burst` intervals from now (the generic cell
/// rate algorithm, a token bucket that needs no clock tick). A key whose time has passed equals an unknown
/// key, so its place is free.
///
/// **When the table is full.** A key hashes to a set of sixteen places. If all are taken, a new key takes
/// the place of the one whose allowance is nearest to full, *and inherits its time*: no key is ever
/// credited with fewer attempts than it made, so a flood of keys cannot erase a counter. A flood can make
/// new keys start with less. To leave them nothing, it must keep every place of their set exhausted, with
/// keys that it cannot choose (the hash is keyed): a whole table, at one attempt per interval each, for as
/// long as the attack lasts. No key is refused for longer than one full refill. Source: the space-saving
/// algorithm (Metwally, Agrawal, El Abbadi, 2005), for the inheritance.
///
/// Unchecked, because the entries are in memory that processes share: the places of a set are accessed only
/// under that set's lock, which is in the same memory.
package final class LimitTable: @unchecked Sendable {
    package static let ways = 16

    package let limit: RateLimit
    let setCount: Int
    /// Stored with a snapshot. A party that knows it can choose the places of keys, so it is secret.
    let hashKey: KeyedHash.Key
    private let hash: KeyedHash
    /// The memory of locks and entries; two processes may share it.
    private let memory: SharedMemory
    private let entries: UnsafeMutableBufferPointer<LimitEntry>
    private let locks: ShardLocks
    /// Increases with each attempt that is counted or refunded.
    private let changeCount = Atomic<UInt64>(0)

    /// A number that differs after any change.
    package var changes: UInt64 { changeCount.load(ordering: .relaxed) }

    /// Room for `capacity` keys, rounded up to a power of two; 16 bytes each.
    package convenience init(_ allowance: RateLimit, capacity: Int, hashKey: KeyedHash.Key) {
        let memory = SharedMemory("countersign-limits", bytes: LimitTable.bytes(capacity: capacity))
        self.init(allowance, capacity: capacity, hashKey: hashKey, in: memory, at: 0, origin: .new)
    }

    enum Origin { case new, ofAnotherProcess }

    /// The same in memory that another process may map, or has created.
    init(
        _ allowance: RateLimit, capacity: Int, hashKey: KeyedHash.Key, in memory: SharedMemory,
        at offset: Int,
        origin: Origin
    ) {
        setCount = LimitTable.setCount(capacity: capacity)
        self.limit = allowance
        self.hashKey = hashKey
        self.memory = memory
        hash = KeyedHash(key: hashKey)
        let start = (memory.start + offset + LimitTable.lockBytes).assumingMemoryBound(to: LimitEntry.self)
        entries = UnsafeMutableBufferPointer(start: start, count: setCount * LimitTable.ways)
        switch origin {
        case .new:
            entries.initialize(repeating: LimitEntry())
            locks = ShardLocks(makingIn: memory, at: offset)
        case .ofAnotherProcess: locks = ShardLocks(sharing: memory, at: offset)
        }
    }

    private static let lockBytes = 8192

    /// Bytes of memory that a table takes.
    static func bytes(capacity: Int) -> Int {
        lockBytes + setCount(capacity: capacity) * ways * MemoryLayout<LimitEntry>.stride
    }

    static func setCount(capacity: Int) -> Int {
        var setCount = ShardLocks.count
        while setCount * ways < min(capacity, 1 << 26) { setCount *= 2 }
        return setCount
    }

    package enum Outcome: Sendable, Equatable {
        case allowed(Debit)
        /// Milliseconds after which one attempt would be allowed.
        case refused(Int64)
    }

    /// One counted attempt; ``refund(_:at:)`` takes it back.
    package struct Debit: Sendable, Equatable {
        let place: UInt64
        let tag: UInt64
        let at: Int64
        /// Milliseconds that the debit added to the key's time.
        let cost: Int64
    }

    /// Counts an attempt if it is allowed. A refused attempt costs nothing, unless the limit charges for it
    /// (``RateLimit/mostDebt``). `rate` is the limit of this key, where the keys of a table differ; nil for
    /// the table's own. An attempt of a `weight` counts as so many, but never more than a full allowance.
    package func debit(_ key: Span<UInt8>, limit rate: RateLimit? = nil, weight: Int = 1, at now: Int64)
        -> Outcome
    {
        let (place, tag) = hash.hash(key)
        let limit = rate ?? self.limit
        let latest = now + limit.fullRefill
        let cost = limit.interval * Int64(min(max(weight, 1), limit.burst))
        return withSet(at: place) { set in
            let known = set.firstIndex { $0.tag == tag && $0.fullAt != LimitEntry.unused }
            let index = known ?? LimitTable.oldest(in: set)
            // After the clock was set back, a stored time may be too far ahead. It is clamped here, so that
            // no key waits longer than one full refill, or than its debt where it has some.
            // Another key's time changes only where an allowed attempt replaces it: its limit may be slower.
            let fullAt =
                set[index].fullAt > latest + limit.mostDebt ? latest : set[index].fullAt
            if known != nil { set[index].fullAt = fullAt }
            let whole = max(fullAt, now) + cost
            guard whole <= latest else {
                // A refused key that is not in the set takes no place: refusals must not displace counts.
                guard limit.mostDebt > 0, known != nil else { return .refused(whole - latest) }
                set[index].fullAt = min(
                    max(fullAt, now) + limit.refusalCharge, latest + limit.mostDebt)
                changeCount.add(1, ordering: .relaxed)
                return .refused(set[index].fullAt + cost - latest)
            }
            set[index] = LimitEntry(tag: tag, fullAt: whole)
            changeCount.add(1, ordering: .relaxed)
            return .allowed(Debit(place: place, tag: tag, at: now, cost: cost))
        }
    }

    /// Whether ``debit(_:limit:weight:at:)`` would allow the attempt; changes nothing.
    package func allows(_ key: Span<UInt8>, limit rate: RateLimit? = nil, weight: Int = 1, at now: Int64)
        -> Bool
    {
        let (place, tag) = hash.hash(key)
        let limit = rate ?? self.limit
        let latest = now + limit.fullRefill
        let cost = limit.interval * Int64(min(max(weight, 1), limit.burst))
        return withSet(at: place) { set in
            let index =
                set.firstIndex { $0.tag == tag && $0.fullAt != LimitEntry.unused }
                ?? LimitTable.oldest(in: set)
            let fullAt = set[index].fullAt > latest + limit.mostDebt ? latest : set[index].fullAt
            return max(fullAt, now) + cost <= latest
        }
    }

    /// How many attempts of the key are used up at `now`; changes nothing. For a key without a place in a
    /// full set, the use that it would inherit.
    package func used(_ key: Span<UInt8>, limit rate: RateLimit? = nil, at now: Int64) -> Int {
        let (place, tag) = hash.hash(key)
        let limit = rate ?? self.limit
        return withSet(at: place) { set in
            let index =
                set.firstIndex { $0.tag == tag && $0.fullAt != LimitEntry.unused }
                ?? LimitTable.oldest(in: set)
            guard set[index].fullAt > now else { return 0 }
            let owed = min(set[index].fullAt - now, limit.fullRefill)
            return Int((owed + limit.interval - 1) / limit.interval)
        }
    }

    /// Takes back the part of a debit that has not refilled since. The caller must refund each debit at
    /// most once.
    package func refund(_ debit: Debit, at now: Int64) {
        let owed = debit.cost - max(now - debit.at, 0)
        guard owed > 0 else { return }
        withSet(at: debit.place) { set in
            guard let index = set.firstIndex(where: { $0.tag == debit.tag && $0.fullAt != LimitEntry.unused })
            else {
                return
            }
            set[index].fullAt -= owed
            changeCount.add(1, ordering: .relaxed)
        }
    }

    /// The place whose allowance is nearest to full; an unused one, if there is one.
    private static func oldest(in set: UnsafeMutableBufferPointer<LimitEntry>) -> Int {
        var oldest = 0
        for index in 1..<LimitTable.ways where set[index].fullAt < set[oldest].fullAt { oldest = index }
        return oldest
    }

    private func withSet<Result>(at place: UInt64, body: (UnsafeMutableBufferPointer<LimitEntry>) -> Result)
        -> Result
    {
        let set = Int(place & UInt64(setCount - 1))
        return withSet(number: set, body: body)
    }

    func withSet<Result>(number set: Int, body: (UnsafeMutableBufferPointer<LimitEntry>) -> Result) -> Result
    {
        let start = set * LimitTable.ways
        // If a process died while it held the lock, the set has complete entries, or a tag with another
        // key's time, as after a replacement; no repair is needed.
        return locks.withLock(of: set & (ShardLocks.count - 1), repair: { _ in }) {
            body(UnsafeMutableBufferPointer(rebasing: entries[start..<start + LimitTable.ways]))
        }
    }
}

struct LimitEntry: BitwiseCopyable {
    /// The time of a place that was never used.
    static let unused = Int64.min

    /// Identifies the key: 64 bits of a keyed hash, apart from those that chose the set.
    var tag: UInt64 = 0
    /// When the key's allowance is full: milliseconds since 1970.
    var fullAt = unused
}

/// A table as bytes, so that the counts survive the process.
///
/// `"CSLIMIT1" ‖ sets (4) ‖ hash key (16) ‖ count (4) ‖ entries ‖ SHA-256 (32)`, each entry `set (4) ‖ tag
/// (8) ‖ full (8)`, numbers big-endian. The digest detects a torn write; it does not protect against a
/// party that can write the file, which could also change the program. The file contains the hash key, so
/// only the server may read it.
extension LimitTable {
    /// The bytes are not a whole snapshot, or belong to another table.
    package enum SnapshotError: Error, Sendable, Equatable {
        /// Not the format of ``snapshot(at:)``.
        case malformed
        /// The snapshot of a table with another capacity or hash key, where keys have other places.
        case otherShape
    }

    private static let magic = Array("CSLIMIT1".utf8)
    private static let headCount = 8 + 4 + 16 + 4
    private static let entryCount = 4 + 8 + 8
    private static let digestCount = 32
    /// Restored times beyond this wait are clamped. The first debit of a key clamps it to the key's own
    /// limit, which the table does not know where its keys differ.
    private static let mostWait: Int64 = 86_400_000

    /// The entries that count at `now`, without keys whose allowance is full. It holds one lock at a time:
    /// attempts continue meanwhile, and each is either included or not.
    package func snapshot(at now: Int64) -> [UInt8] {
        var bytes = LimitTable.magic
        append(UInt64(setCount), count: 4, to: &bytes)
        for index in hashKey.indices { bytes.append(hashKey[index]) }
        append(0, count: 4, to: &bytes)
        var count: UInt64 = 0
        for set in 0..<setCount {
            withSet(number: set) { entries in
                for entry in entries where entry.fullAt > now {
                    append(UInt64(set), count: 4, to: &bytes)
                    append(entry.tag, count: 8, to: &bytes)
                    append(UInt64(bitPattern: entry.fullAt), count: 8, to: &bytes)
                    count += 1
                }
            }
        }
        for (index, shift) in [24, 16, 8, 0].enumerated() {
            bytes[LimitTable.headCount - 4 + index] = UInt8(truncatingIfNeeded: count >> UInt64(shift))
        }
        let digest = SHA256.digest(bytes.span)
        for index in digest.indices { bytes.append(digest[index]) }
        return bytes
    }

    /// The hash key of a snapshot, for the table that is to restore it.
    package static func hashKey(of snapshot: [UInt8]) throws(SnapshotError) -> KeyedHash.Key {
        try check(snapshot)
        return KeyedHash.Key { snapshot[12 + $0] }
    }

    /// Restores a snapshot's keys into a new table with the snapshot's hash key and capacity.
    package func restore(_ snapshot: [UInt8], at now: Int64) throws(SnapshotError) {
        try LimitTable.check(snapshot)
        func number(at start: Int, count: Int) -> UInt64 {
            snapshot[start..<start + count].reduce(0) { $0 << 8 | UInt64($1) }
        }
        let isSame = hashKey.indices.allSatisfy { hashKey[$0] == snapshot[12 + $0] }
        guard number(at: 8, count: 4) == UInt64(setCount), isSame else { throw .otherShape }
        var start = LimitTable.headCount
        while start < snapshot.count - LimitTable.digestCount {
            let set = Int(number(at: start, count: 4))
            guard set < setCount else { throw .malformed }
            let entry = LimitEntry(
                tag: number(at: start + 4, count: 8),
                fullAt: min(
                    Int64(bitPattern: number(at: start + 12, count: 8)),
                    now + max(limit.fullRefill + limit.mostDebt, LimitTable.mostWait)))
            try place(entry, in: set)
            start += LimitTable.entryCount
        }
    }

    private func place(_ entry: LimitEntry, in set: Int) throws(SnapshotError) {
        let isPlaced: Bool = withSet(number: set) { entries in
            guard let free = entries.firstIndex(where: { $0.fullAt == LimitEntry.unused }) else {
                return false
            }
            entries[free] = entry
            return true
        }
        guard isPlaced else { throw .malformed }
    }

    private static func check(_ snapshot: [UInt8]) throws(SnapshotError) {
        let least = headCount + digestCount
        guard snapshot.count >= least, snapshot.starts(with: magic) else { throw .malformed }
        let count = snapshot[headCount - 4..<headCount].reduce(0) { $0 << 8 | Int($1) }
        guard snapshot.count == least + count * entryCount else { throw .malformed }
        let digest = SHA256.digest(snapshot.span.extracting(0..<snapshot.count - digestCount))
        for index in 0..<digestCount where snapshot[snapshot.count - digestCount + index] != digest[index] {
            throw .malformed
        }
    }

    private func append(_ number: UInt64, count: Int, to bytes: inout [UInt8]) {
        for index in 0..<count {
            bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * (count - 1 - index))))
        }
    }
}
