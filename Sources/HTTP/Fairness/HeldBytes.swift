import Synchronization

/// The bytes of bodies that the process holds, over all loops, by what their senders have proved.
final class HeldBytes: Sendable {
    private let unproven = Atomic<Int>(0)
    /// Of callers without a session, and of all verified ones.
    private let released = Atomic<Int>(0)
    private let proven = Atomic<Int>(0)

    /// Bytes that are held for one exchange, and who they count to.
    struct Booking {
        fileprivate let usage: Usage
        fileprivate let standing: ConnectionStanding
        fileprivate(set) var count = 0

        init(usage: Usage, standing: ConnectionStanding) {
            self.usage = usage
            self.standing = standing
        }

        fileprivate var counter: Usage.Counter { standing == .unproven ? .unprovenBytes : .provenBytes }
    }

    /// Books `count` more bytes; false, and nothing booked, where the sender or all together would hold too much.
    func add(_ count: Int, to booking: inout Booking, limits: Limits) -> Bool {
        let own =
            switch booking.standing {
            case .unproven: limits.addressUnprovenBytes
            case .release: limits.addressHeldBytes
            case .session: limits.accountHeldBytes
            }
        guard booking.usage.reserve(count, of: booking.counter, limit: own) else { return false }
        guard addInAll(count, of: booking.standing, limits: limits) else {
            booking.usage.count(-count, of: booking.counter)
            return false
        }
        booking.count += count
        return true
    }

    func remove(_ booking: Booking) {
        guard booking.count > 0 else { return }
        booking.usage.count(-booking.count, of: booking.counter)
        switch booking.standing {
        case .unproven: unproven.subtract(booking.count, ordering: .relaxed)
        case .release:
            released.subtract(booking.count, ordering: .relaxed)
            proven.subtract(booking.count, ordering: .relaxed)
        case .session: proven.subtract(booking.count, ordering: .relaxed)
        }
    }

    /// All bytes that are held.
    var current: Int { unproven.load(ordering: .relaxed) + proven.load(ordering: .relaxed) }

    private func addInAll(_ count: Int, of standing: ConnectionStanding, limits: Limits) -> Bool {
        switch standing {
        case .unproven: return HeldBytes.reserve(count, of: unproven, limit: limits.unprovenBytes)
        case .session: return HeldBytes.reserve(count, of: proven, limit: limits.heldBytes)
        case .release:
            guard HeldBytes.reserve(count, of: released, limit: limits.heldBytes / 2) else { return false }
            guard HeldBytes.reserve(count, of: proven, limit: limits.heldBytes) else {
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
