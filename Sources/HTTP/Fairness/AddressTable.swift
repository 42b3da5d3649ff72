import CountersignMemory
import CountersignWire
import Synchronization

/// The work that each address may cause, each kind with a budget of its own; see
/// ``AddressRecord/take(_:now:)``.
package enum AddressBudget: CaseIterable, Sendable {
    /// Refusals that the server signs.
    case signedRefusal
    /// Requests whose signature did not verify.
    case failedVerification
    /// Refusals with an explanation, which costs about 5 ms each.
    case explanation

    /// The burst, and the refill per second. Thousands of callers may share a carrier's address, so each
    /// budget bounds the cost of an address (at most about 1 % of a core) and not the use by one caller.
    var tokens: (most: UInt32, perSecond: UInt32) {
        switch self {
        case .signedRefusal: (most: 1_000, perSecond: 400)
        case .failedVerification: (most: 2_000, perSecond: 1_000)
        case .explanation: (most: 20, perSecond: 2)
        }
    }
}

/// The counters of one address: an IPv4 address, an IPv6 /64, or the /56 or /48 network around it.
///
/// One object per address and process, shared by all loops; every counter is atomic.
package final class AddressRecord: Sendable {
    package let address: NetworkAddress
    let usage: CallerUsage
    /// The network around this one; its budgets are those of one subscriber times its
    /// ``CallerUsage/scale``.
    let wider: AddressRecord?
    private let signedRefusals: TokenBucket
    private let failedVerifications: TokenBucket
    private let explanations: TokenBucket

    /// Makes a record outside any table, for tests and for callers without a connection.
    package convenience init(address: NetworkAddress) { self.init(address: address, wider: nil, scale: 1) }

    init(address: NetworkAddress, wider: AddressRecord?, scale: Int) {
        self.address = address
        self.wider = wider
        usage = CallerUsage(wider: wider?.usage, scale: scale)
        signedRefusals = TokenBucket(.signedRefusal, scale: scale)
        failedVerifications = TokenBucket(.failedVerification, scale: scale)
        explanations = TokenBucket(.explanation, scale: scale)
    }

    /// Takes one token; false when the budget of this address, or of a network around it, is exhausted.
    /// `now` is in whole seconds of a monotonic clock, such as ``EventLoop/seconds``.
    package func take(_ budget: AddressBudget, now: Int64) -> Bool {
        let isTaken =
            switch budget {
            case .signedRefusal: signedRefusals.take(now: now)
            case .failedVerification: failedVerifications.take(now: now)
            case .explanation: explanations.take(now: now)
            }
        return isTaken && wider?.take(budget, now: now) ?? true
    }

    /// Whether every budget is full, so that dropping the record restores no used budget.
    func isRested(now: Int64) -> Bool {
        signedRefusals.isFull(now: now) && failedVerifications.isFull(now: now)
            && explanations.isFull(now: now)
    }
}

/// A token bucket with a burst and a refill per second. The second of the last change and the remaining
/// tokens share one atomic word.
private struct TokenBucket: ~Copyable, Sendable {
    private let state: Atomic<UInt64>
    private let most: UInt32
    private let perSecond: UInt32

    init(_ budget: AddressBudget, scale: Int) {
        let scale = UInt32(clamping: scale)
        most = budget.tokens.most &* scale
        perSecond = budget.tokens.perSecond &* scale
        state = Atomic(UInt64(most))
    }

    /// The tokens at `now`. The clocks of two loops may differ by a second, so a negative time difference
    /// counts as zero.
    private func left(_ state: UInt64, at now: UInt32) -> UInt32 {
        let elapsed = Int32(bitPattern: now &- UInt32(truncatingIfNeeded: state >> 32))
        let gained = UInt64(clamping: Int64(elapsed)) * UInt64(perSecond)
        return UInt32(clamping: min(UInt64(most), UInt64(UInt32(truncatingIfNeeded: state)) + gained))
    }

    func take(now: Int64) -> Bool {
        let second = UInt32(truncatingIfNeeded: now)
        var old = state.load(ordering: .relaxed)
        while true {
            let left = left(old, at: second)
            guard left > 0 else { return false }
            let (isDone, found) = state.weakCompareExchange(
                expected: old, desired: UInt64(second) << 32 | UInt64(left - 1), ordering: .relaxed)
            if isDone { return true }
            old = found
        }
    }

    func isFull(now: Int64) -> Bool {
        left(state.load(ordering: .relaxed), at: UInt32(truncatingIfNeeded: now)) == most
    }
}

/// The records of the callers' addresses, one object per address, shared by all loops.
///
/// A connection looks up its address once and keeps the reference. The table is bounded: when it is full,
/// it drops unused records, those with full budgets first. It never drops a record in use; their number is
/// bounded by that of connections and exchanges.
package final class AddressTable: Sendable {
    private let shards: [RecordShard<NetworkAddress, AddressRecord>]

    /// Makes a table for `most` records of about 200 bytes each.
    package init(most: Int = 65_536) {
        shards = (0..<64).map { _ in RecordShard(most: max(1, most / 64)) }
    }

    package var count: Int { shards.reduce(0) { $0 + $1.count } }

    /// Returns the record of the address's subscriber; it is in use until ``release(_:)``.
    func acquire(_ address: NetworkAddress, now: Int64) -> AddressRecord {
        let subscriber = address.subscriber
        guard subscriber.isIPv6 else { return acquire(subscriber, within: nil, scale: 1, now: now) }
        let site = acquire(subscriber.prefix(bits: 48), within: nil, scale: 16, now: now)
        let home = acquire(subscriber.prefix(bits: 56), within: site, scale: 4, now: now)
        let record = acquire(subscriber, within: home, scale: 1, now: now)
        // While the table holds the record, the record keeps the networks around it in use.
        release(home)
        release(site)
        return record
    }

    func release(_ record: AddressRecord) { record.usage.users.subtract(1, ordering: .acquiringAndReleasing) }

    private func acquire(
        _ key: NetworkAddress, within wider: AddressRecord?, scale: Int, now: Int64
    ) -> AddressRecord {
        let shard = shards[Int(UInt(bitPattern: key.hashValue) % UInt(shards.count))]
        return shard.acquire(key) {
            wider?.usage.users.add(1, ordering: .relaxed)
            return AddressRecord(address: key, wider: wider, scale: scale)
        } isRested: {
            $0.isRested(now: now)
        } forget: {
            $0.wider?.usage.users.subtract(1, ordering: .acquiringAndReleasing)
        }
    }
}

/// The usage of accounts that have connections, bounded like ``AddressTable``.
final class AccountTable: Sendable {
    private let shards: [RecordShard<Int64, CallerUsage>]

    init(most: Int = 65_536) {
        shards = (0..<64).map { _ in RecordShard(most: max(1, most / 64)) }
    }

    func acquire(_ account: Int64) -> CallerUsage {
        shards[Int(UInt64(bitPattern: account) % UInt64(shards.count))].acquire(account) {
            CallerUsage()
        } isRested: { _ in
            true
        } forget: { _ in
        }
    }

    func release(_ usage: CallerUsage) { usage.users.subtract(1, ordering: .acquiringAndReleasing) }
}

/// A record that counts its references.
protocol UseCounted: AnyObject, Sendable {
    var usage: CallerUsage { get }
}

extension AddressRecord: UseCounted {}

extension CallerUsage: UseCounted {
    var usage: CallerUsage { self }
}

/// A part of a table with its own lock.
private final class RecordShard<Key: Hashable & Sendable, Record: UseCounted>: Sendable {
    private struct State {
        var records: [Key: Record] = [:]
        /// The number of records at which the next insertion sweeps.
        var sweepAt: Int
    }

    private let state: Locked<State>
    private let most: Int

    init(most: Int) {
        self.most = most
        state = Locked(State(sweepAt: most))
    }

    var count: Int { state.with { $0.records.count } }

    func acquire(
        _ key: Key, make: () -> Record, isRested: (Record) -> Bool, forget: (Record) -> Void
    ) -> Record {
        state.with { state in
            let record: Record
            if let known = state.records[key] {
                record = known
            } else {
                if state.records.count >= state.sweepAt {
                    sweep(&state, where: isRested, forget: forget)
                }
                record = make()
                state.records[key] = record
            }
            // Counted under the lock, so that no sweep drops a record that is about to be used.
            record.usage.users.add(1, ordering: .relaxed)
            return record
        }
    }

    /// Drops unused records until a quarter is free: first those with full budgets, then others. The next
    /// sweep comes after at least a quarter of the capacity in insertions, even if this one drops nothing,
    /// so that its amortised cost is constant.
    private func sweep(_ state: inout State, where isRested: (Record) -> Bool, forget: (Record) -> Void) {
        let enough = most - max(1, most / 4)
        for mustBeRested in [true, false] {
            for (key, record) in state.records where state.records.count > enough {
                guard record.usage.users.load(ordering: .acquiring) == 0, !mustBeRested || isRested(record)
                else {
                    continue
                }
                state.records[key] = nil
                forget(record)
            }
        }
        state.sweepAt = max(most, state.records.count + max(1, most / 4))
    }
}
