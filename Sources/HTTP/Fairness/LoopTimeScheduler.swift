import CountersignWire

/// The time that one address has used of a loop's turn, and its connections that wait for more. Confined to
/// that loop.
///
/// All connections of an address share it, so that an address gains no time by opening more connections.
final class AddressTimeShare {
    /// The number of connections that refer to it; the loop drops the share with the last one.
    fileprivate(set) var users = 0
    fileprivate let address: NetworkAddress?
    /// The turn that `spent` belongs to, and the nanoseconds that `spent` may reach.
    private var turn: UInt64 = 0
    private var spent: Int64 = 0
    private var allowance = LoopTimeScheduler.firstAllowance
    fileprivate var waiting: [TurnWaiter] = []
    fileprivate var firstWaiting = 0

    init(address: NetworkAddress?) { self.address = address }

    fileprivate var isWaiting: Bool { firstWaiting < waiting.count }

    /// Whether the share of this turn is used up, including `more` nanoseconds that are not booked yet.
    func isUsedUp(in turn: UInt64, more: Int64) -> Bool {
        (self.turn == turn ? spent : 0) &+ more
            >= (self.turn == turn ? allowance : LoopTimeScheduler.firstAllowance)
    }

    func spend(_ nanoseconds: Int64, in turn: UInt64) {
        if self.turn != turn {
            (self.turn, spent, allowance) = (turn, 0, LoopTimeScheduler.firstAllowance)
        }
        spent &+= nanoseconds
    }

    /// Grants the share a further part of the turn, when its place in the waiting order comes up.
    fileprivate func grant(_ nanoseconds: Int64, in turn: UInt64) {
        (self.turn, spent, allowance) = (turn, 0, nanoseconds)
    }

    fileprivate func popFirst() -> TurnWaiter? {
        guard isWaiting else { return nil }
        let first = waiting[firstWaiting]
        firstWaiting += 1
        if firstWaiting == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            firstWaiting = 0
        } else if firstWaiting >= 256, firstWaiting * 2 >= waiting.count {
            waiting.removeFirst(firstWaiting)
            firstWaiting = 0
        }
        return first
    }
}

/// Divides a loop's time among addresses. Confined to the loop.
///
/// In each turn, every address may use a first allowance at once. Connections that need more time wait
/// here; the loop resumes them address by address, for a bounded part of each turn, and then polls again. A
/// connection that has just become readable is therefore served before those that have used much time.
final class LoopTimeScheduler {
    /// Nanoseconds that an address may use in a turn without waiting.
    static let firstAllowance: Int64 = 2_000_000
    /// Nanoseconds of a turn after which every connection waits, whatever the number of addresses.
    static let turnLength: Int64 = 4_000_000
    /// Nanoseconds of a turn for all waiting connections, and for one of them at a time.
    static let waitingLength: Int64 = 1_000_000
    static let waitingAllowance: Int64 = 250_000

    private var shares: [NetworkAddress: AddressTimeShare] = [:]
    /// Shares with waiting connections, in the order in which they are served; those before `firstReady`
    /// have been served.
    private var ready: [AddressTimeShare] = []
    private var firstReady = 0

    /// Returns the share of an address; it is in use until ``release(_:)``.
    func acquire(_ address: NetworkAddress) -> AddressTimeShare {
        let share = shares[address] ?? AddressTimeShare(address: address)
        shares[address] = share
        share.users += 1
        return share
    }

    func release(_ share: AddressTimeShare) {
        share.users -= 1
        if share.users == 0, let address = share.address { shares[address] = nil }
    }

    var hasWaiting: Bool { firstReady < ready.count }

    func append(_ waiter: TurnWaiter, of share: AddressTimeShare) {
        if !share.isWaiting { ready.append(share) }
        share.waiting.append(waiter)
    }

    /// The next waiting connection to resume, of the address that has waited longest.
    func popFirst(in turn: UInt64) -> TurnWaiter? {
        guard hasWaiting else { return nil }
        let share = ready[firstReady]
        firstReady += 1
        if firstReady >= 256 || firstReady == ready.count {
            ready.removeFirst(firstReady)
            firstReady = 0
        }
        share.grant(LoopTimeScheduler.waitingAllowance, in: turn)
        let waiter = share.popFirst()
        if share.isWaiting { ready.append(share) }
        return waiter
    }
}

/// A task or a connection that waits for its address's turn.
enum TurnWaiter {
    case task(UnsafeContinuation<Void, Never>)
    /// A connection whose next request has arrived, and needs no task yet.
    case connection(Connection)
}
