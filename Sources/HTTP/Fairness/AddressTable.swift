import Synchronization

/// The records of the addresses that call, one object each, shared by all loops.
///
/// A connection looks its address up once and keeps the reference. The table remembers a bounded number: what
/// nothing uses goes when there are too many, records with full budgets first. Records in use stay; there are
/// no more of them than connections and exchanges.
package final class AddressTable: Sendable {
    private let shards: [RecordShard<NetworkAddress, AddressRecord>]

    /// `most` records, 200 bytes each.
    package init(most: Int = 65_536) {
        shards = (0..<64).map { _ in RecordShard(most: max(1, most / 64)) }
    }

    package var count: Int { shards.reduce(0) { $0 + $1.count } }

    /// The record of the address's subscriber, in use until ``release(_:)``.
    func acquire(_ address: NetworkAddress, now: Int64) -> AddressRecord {
        let subscriber = address.subscriber
        guard subscriber.isIPv6 else { return acquire(subscriber, within: nil, scale: 1, now: now) }
        let site = acquire(subscriber.prefix(bits: 48), within: nil, scale: 16, now: now)
        let home = acquire(subscriber.prefix(bits: 56), within: site, scale: 4, now: now)
        let record = acquire(subscriber, within: home, scale: 1, now: now)
        // The record itself keeps the networks around it in use for as long as it is remembered.
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

/// The usage of accounts that have connections; kept like addresses.
final class AccountTable: Sendable {
    private let shards: [RecordShard<Int64, Usage>]

    init(most: Int = 65_536) {
        shards = (0..<64).map { _ in RecordShard(most: max(1, most / 64)) }
    }

    func acquire(_ account: Int64) -> Usage {
        shards[Int(UInt64(bitPattern: account) % UInt64(shards.count))].acquire(account) {
            Usage()
        } isRested: { _ in
            true
        } forget: { _ in
        }
    }

    func release(_ usage: Usage) { usage.users.subtract(1, ordering: .acquiringAndReleasing) }
}

/// Knows how often it is in use.
protocol Counted: AnyObject, Sendable {
    var usage: Usage { get }
}

extension AddressRecord: Counted {}

extension Usage: Counted {
    var usage: Usage { self }
}

/// A part of a table under a lock of its own. Safe to share: `records` is touched under the lock.
private final class RecordShard<Key: Hashable & Sendable, Record: Counted>: @unchecked Sendable {
    private let lock = Lock()
    private var records: [Key: Record] = [:]
    private let most: Int
    /// At this count the unused records go.
    private var sweepAt: Int

    init(most: Int) {
        self.most = most
        sweepAt = most
    }

    var count: Int { lock.hold { records.count } }

    func acquire(
        _ key: Key, make: () -> Record, isRested: (Record) -> Bool, forget: (Record) -> Void
    ) -> Record {
        lock.hold {
            let record: Record
            if let known = records[key] {
                record = known
            } else {
                if records.count >= sweepAt { sweep(isRested, forget) }
                record = make()
                records[key] = record
            }
            // Under the lock, so that no sweep takes a record that is about to be used.
            record.usage.users.add(1, ordering: .relaxed)
            return record
        }
    }

    /// Drops the unused records that are rested, then others that are unused, until a quarter is free. The
    /// cost of a sweep is spread over the insertions that made it necessary, also where nothing may go.
    private func sweep(_ isRested: (Record) -> Bool, _ forget: (Record) -> Void) {
        let enough = most - max(1, most / 4)
        for mustBeRested in [true, false] {
            for (key, record) in records where records.count > enough {
                guard record.usage.users.load(ordering: .acquiring) == 0, !mustBeRested || isRested(record) else {
                    continue
                }
                records[key] = nil
                forget(record)
            }
        }
        sweepAt = max(most, records.count + max(1, most / 4))
    }
}
