import Synchronization

/// Counts the bytes of bodies that the process holds, over all loops, by the proof level of their senders.
final class HeldBodyBudget: Sendable {
    private let unproven = Atomic<Int>(0)
    /// Bytes of verified callers without a session, and of all verified callers.
    private let released = Atomic<Int>(0)
    private let proven = Atomic<Int>(0)

    /// The bytes that are held for one exchange, and the party that they count to.
    struct Reservation {
        fileprivate let usage: CallerUsage
        fileprivate let proofLevel: ConnectionProofLevel
        fileprivate(set) var count = 0

        init(usage: CallerUsage, proofLevel: ConnectionProofLevel) {
            self.usage = usage
            self.proofLevel = proofLevel
        }

        fileprivate var counter: CallerUsage.Counter {
            proofLevel == .unproven ? .unprovenBytes : .provenBytes
        }
    }

    /// Reserves `count` more bytes; false, without a change, if the sender or all senders together would
    /// exceed their limit.
    func add(_ count: Int, to booking: inout Reservation, limits: Limits) -> Bool {
        let own =
            switch booking.proofLevel {
            case .unproven: limits.addressUnprovenBytes
            case .release: limits.addressHeldBytes
            case .session: limits.accountHeldBytes
            }
        guard booking.usage.reserve(count, of: booking.counter, limit: own) else { return false }
        guard addInAll(count, of: booking.proofLevel, limits: limits) else {
            booking.usage.count(-count, of: booking.counter)
            return false
        }
        booking.count += count
        return true
    }

    func remove(_ booking: Reservation) {
        guard booking.count > 0 else { return }
        booking.usage.count(-booking.count, of: booking.counter)
        switch booking.proofLevel {
        case .unproven: unproven.subtract(booking.count, ordering: .relaxed)
        case .release:
            released.subtract(booking.count, ordering: .relaxed)
            proven.subtract(booking.count, ordering: .relaxed)
        case .session: proven.subtract(booking.count, ordering: .relaxed)
        }
    }

    /// All bytes that are held.
    var current: Int { unproven.load(ordering: .relaxed) + proven.load(ordering: .relaxed) }

    private func addInAll(_ count: Int, of standing: ConnectionProofLevel, limits: Limits) -> Bool {
        switch standing {
        case .unproven: return HeldBodyBudget.reserve(count, of: unproven, limit: limits.unprovenBytes)
        case .session: return HeldBodyBudget.reserve(count, of: proven, limit: limits.heldBytes)
        case .release:
            guard HeldBodyBudget.reserve(count, of: released, limit: limits.heldBytes / 2) else {
                return false
            }
            guard HeldBodyBudget.reserve(count, of: proven, limit: limits.heldBytes) else {
                released.subtract(count, ordering: .relaxed)
                return false
            }
            return true
        }
    }

    private static func reserve(_ count: Int, of counter: borrowing Atomic<Int>, limit: Int) -> Bool {
        guard counter.add(count, ordering: .relaxed).newValue <= limit else {
            counter.subtract(count, ordering: .relaxed)
            return false
        }
        return true
    }
}

/// The current use of the server by one party: an address, a network of addresses, or an account.
///
/// One object per party and process, shared by all loops; every counter is atomic.
package final class CallerUsage: Sendable {
    /// Open connections that count to this party.
    let connections = Atomic<Int>(0)
    /// Requests between the end of their head and the end of their response.
    let requests = Atomic<Int>(0)
    /// Bytes of bodies that are held before and after their signature was verified.
    let unprovenBytes = Atomic<Int>(0)
    let provenBytes = Atomic<Int>(0)
    /// The number of connections and exchanges that hold a reference; the table drops the party only at 0.
    let users = Atomic<Int>(0)
    /// The network around this one; it counts the same resources.
    let wider: CallerUsage?
    /// The factor on a subscriber's limit: a network has more than one subscriber.
    let scale: Int

    init(wider: CallerUsage? = nil, scale: Int = 1) {
        self.wider = wider
        self.scale = scale
    }

    enum Counter { case connections, requests, unprovenBytes, provenBytes }

    private borrowing func add(_ amount: Int, to counter: Counter) -> Int {
        switch counter {
        case .connections: connections.add(amount, ordering: .relaxed).newValue
        case .requests: requests.add(amount, ordering: .relaxed).newValue
        case .unprovenBytes: unprovenBytes.add(amount, ordering: .relaxed).newValue
        case .provenBytes: provenBytes.add(amount, ordering: .relaxed).newValue
        }
    }

    /// Counts `amount` here and in the networks around; false, without a change, if one of them would
    /// exceed `limit` times its scale.
    func reserve(_ amount: Int, of counter: Counter, limit: Int) -> Bool {
        guard add(amount, to: counter) <= CallerUsage.scaled(limit, by: scale) else {
            _ = add(-amount, to: counter)
            return false
        }
        guard let wider, !wider.reserve(amount, of: counter, limit: limit) else { return true }
        _ = add(-amount, to: counter)
        return false
    }

    /// Counts without a limit, here and in the networks around.
    func count(_ amount: Int, of counter: Counter) {
        _ = add(amount, to: counter)
        wider?.count(amount, of: counter)
    }

    func value(of counter: Counter) -> Int { add(0, to: counter) }

    /// Whether this party, or a network around it, has more than `limit` times its scale in use.
    func exceeds(_ limit: Int, of counter: Counter) -> Bool {
        value(of: counter) > CallerUsage.scaled(limit, by: scale)
            || (wider?.exceeds(limit, of: counter) ?? false)
    }

    private static func scaled(_ limit: Int, by scale: Int) -> Int {
        let (product, overflow) = limit.multipliedReportingOverflow(by: scale)
        return overflow ? .max : product
    }
}
