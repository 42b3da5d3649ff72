/// What one address has had of a loop's time, and its connections that wait for more. Confined to that loop.
///
/// All connections of an address share it, so that who opens more connections does not get more of the loop.
final class TurnShare {
    /// Connections that refer to it; the loop forgets the share with the last one.
    fileprivate(set) var users = 0
    fileprivate let address: NetworkAddress?
    /// The turn that `spent` counts, and how many nanoseconds it may come to.
    private var turn: UInt64 = 0
    private var spent: Int64 = 0
    private var allowance = TurnSchedule.firstAllowance
    fileprivate var waiting: [UnsafeContinuation<Void, Never>] = []
    fileprivate var firstWaiting = 0

    init(address: NetworkAddress?) { self.address = address }

    fileprivate var isWaiting: Bool { firstWaiting < waiting.count }

    /// Whether the share of this turn is used up, `more` nanoseconds included that are not booked yet.
    func isUsedUp(in turn: UInt64, more: Int64) -> Bool {
        (self.turn == turn ? spent : 0) &+ more >= (self.turn == turn ? allowance : TurnSchedule.firstAllowance)
    }

    func spend(_ nanoseconds: Int64, in turn: UInt64) {
        if self.turn != turn {
            (self.turn, spent, allowance) = (turn, 0, TurnSchedule.firstAllowance)
        }
        spent &+= nanoseconds
    }

    /// A part of its own, when its turn comes among those that wait.
    fileprivate func grant(_ nanoseconds: Int64, in turn: UInt64) {
        (self.turn, spent, allowance) = (turn, 0, nanoseconds)
    }

    fileprivate func popFirst() -> UnsafeContinuation<Void, Never>? {
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

/// Divides a loop's time among the addresses that want it. Confined to the loop.
///
/// In each turn every address may use a first allowance at once. What wants more waits here, and is resumed
/// address by address, for a bounded part of each turn; then the loop polls again. A caller who has just
/// become readable is so always served ahead of those who have had much.
final class TurnSchedule {
    /// Nanoseconds that an address may use in a turn without waiting.
    static let firstAllowance: Int64 = 2_000_000
    /// Nanoseconds after which everybody waits, however many addresses there are.
    static let turnLength: Int64 = 4_000_000
    /// Nanoseconds a turn for those that wait, and for one of them at a time.
    static let waitingLength: Int64 = 1_000_000
    static let waitingAllowance: Int64 = 250_000

    private var shares: [NetworkAddress: TurnShare] = [:]
    /// Shares with connections that wait, in the order of their turns; those before `firstReady` have been served.
    private var ready: [TurnShare] = []
    private var firstReady = 0

    /// The share of an address, until ``release(_:)``.
    func acquire(_ address: NetworkAddress) -> TurnShare {
        let share = shares[address] ?? TurnShare(address: address)
        shares[address] = share
        share.users += 1
        return share
    }

    func release(_ share: TurnShare) {
        share.users -= 1
        if share.users == 0, let address = share.address { shares[address] = nil }
    }

    var hasWaiting: Bool { firstReady < ready.count }

    func append(_ continuation: UnsafeContinuation<Void, Never>, of share: TurnShare) {
        if !share.isWaiting { ready.append(share) }
        share.waiting.append(continuation)
    }

    /// The next connection that may go on, of the address that has waited longest.
    func popFirst(in turn: UInt64) -> UnsafeContinuation<Void, Never>? {
        guard hasWaiting else { return nil }
        let share = ready[firstReady]
        firstReady += 1
        if firstReady >= 256 || firstReady == ready.count {
            ready.removeFirst(firstReady)
            firstReady = 0
        }
        share.grant(TurnSchedule.waitingAllowance, in: turn)
        let continuation = share.popFirst()
        if share.isWaiting { ready.append(share) }
        return continuation
    }
}
