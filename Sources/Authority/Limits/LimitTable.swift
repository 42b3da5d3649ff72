import CountersignGate
import CountersignSeal
import Synchronization

/// Counts attempts by key, in memory that never grows. Times are arguments: milliseconds since 1970.
///
/// For each key one number is kept: when its allowance will be whole again. An attempt moves it on by one interval, and is
/// allowed while it lies within `burst` intervals from now (the generic cell rate algorithm, which is a token bucket that
/// needs no clock tick). A key whose time has passed is as good as one that is not there, so its place is free.
///
/// **When it is full.** A key hashes to a set of sixteen places. If all are taken, the newcomer takes the place of the one
/// whose allowance is nearest to whole, *and inherits its time*: no key is ever credited with fewer attempts than it
/// made, so a flood of keys cannot wash a counter away. What it can do is make newcomers start with less. To leave
/// them nothing, it must keep every place of their set used up, with keys that it cannot choose (the hash is keyed): a
/// whole table, at one attempt an interval each, for as long as it lasts. Nobody is ever refused for longer
/// than one whole span. Source: the space-saving algorithm (Metwally, Agrawal, El Abbadi, 2005), for the inheritance.
///
/// Safe to share: the places of a set are touched under that set's lock.
package final class LimitTable: @unchecked Sendable {
    package static let ways = 16

    package let allowance: Allowance
    let setCount: Int
    /// Kept with a snapshot; who knows it can choose where keys land.
    let hashKey: KeyedHash.Key
    private let hash: KeyedHash
    /// Where locks and entries lie; two processes may share them.
    private let memory: SharedMemory
    private let entries: UnsafeMutableBufferPointer<LimitEntry>
    private let locks: ShardLocks
    /// Goes up with each attempt that was counted or taken back.
    private let changeCount = Atomic<UInt64>(0)

    /// A number that is another one once anything has changed.
    package var changes: UInt64 { changeCount.load(ordering: .relaxed) }

    /// Room for `capacity` keys, rounded up to a power of two; 16 bytes each.
    package convenience init(_ allowance: Allowance, capacity: Int, hashKey: KeyedHash.Key) {
        let memory = SharedMemory("countersign-limits", bytes: LimitTable.bytes(capacity: capacity))
        self.init(allowance, capacity: capacity, hashKey: hashKey, in: memory, at: 0, origin: .new)
    }

    enum Origin { case new, ofAnotherProcess }

    /// The same in memory that another process may map, or has made.
    init(
        _ allowance: Allowance, capacity: Int, hashKey: KeyedHash.Key, in memory: SharedMemory, at offset: Int,
        origin: Origin
    ) {
        setCount = LimitTable.setCount(capacity: capacity)
        self.allowance = allowance
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

    /// One attempt that was counted; what ``refund(_:at:)`` needs to take it back.
    package struct Debit: Sendable, Equatable {
        let place: UInt64
        let tag: UInt64
        let at: Int64
    }

    /// Counts an attempt if it is allowed. One that is refused costs nothing.
    package func debit(_ key: Span<UInt8>, at now: Int64) -> Outcome {
        let (place, tag) = hash.hash(key)
        return withSet(place) { set in
            let index = set.firstIndex { $0.tag == tag && $0.whole != LimitEntry.never } ?? LimitTable.oldest(in: set)
            // A clock that was set back must not lock anybody out for longer than one span: so the time is corrected where it
            // stands, and what was told to wait for comes.
            set[index].whole = min(set[index].whole, now + allowance.span)
            let whole = max(set[index].whole, now) + allowance.interval
            guard whole <= now + allowance.span else { return .refused(whole - now - allowance.span) }
            set[index] = LimitEntry(tag: tag, whole: whole)
            changeCount.add(1, ordering: .relaxed)
            return .allowed(Debit(place: place, tag: tag, at: now))
        }
    }

    /// Takes back what of a debit has not grown back by itself. Once for each debit: that is its holder's to see to.
    package func refund(_ debit: Debit, at now: Int64) {
        let owed = allowance.interval - max(now - debit.at, 0)
        guard owed > 0 else { return }
        withSet(debit.place) { set in
            guard let index = set.firstIndex(where: { $0.tag == debit.tag && $0.whole != LimitEntry.never }) else {
                return
            }
            set[index].whole -= owed
            changeCount.add(1, ordering: .relaxed)
        }
    }

    /// The place whose allowance is nearest to whole; one that was never used, if there is one.
    private static func oldest(in set: UnsafeMutableBufferPointer<LimitEntry>) -> Int {
        var oldest = 0
        for index in 1..<LimitTable.ways where set[index].whole < set[oldest].whole { oldest = index }
        return oldest
    }

    private func withSet<Result>(_ place: UInt64, _ body: (UnsafeMutableBufferPointer<LimitEntry>) -> Result) -> Result
    {
        let set = Int(place & UInt64(setCount - 1))
        return withSet(number: set, body)
    }

    func withSet<Result>(number set: Int, _ body: (UnsafeMutableBufferPointer<LimitEntry>) -> Result) -> Result {
        let start = set * LimitTable.ways
        // A process that died with the lock left whole entries, or a tag with the time of another, as a full set does.
        return locks.with(set & (ShardLocks.count - 1), repair: { _ in }) {
            body(UnsafeMutableBufferPointer(rebasing: entries[start..<start + LimitTable.ways]))
        }
    }
}

struct LimitEntry: BitwiseCopyable {
    /// Of a place that was never used.
    static let never = Int64.min

    /// Stands for the key: 64 bits of a keyed hash, besides those that chose the set.
    var tag: UInt64 = 0
    /// When the key's allowance is whole again: milliseconds since 1970.
    var whole = never
}
