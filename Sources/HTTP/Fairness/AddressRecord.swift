import Synchronization

/// What each address may make the server do at its own expense; see ``AddressRecord/take(_:now:)``.
package enum AddressBudget: CaseIterable, Sendable {
    /// Refusals that the server signs.
    case signedRefusal
    /// Requests whose signature did not hold.
    case failedVerification
    /// Refusals that are explained, 5 ms each.
    case explanation

    /// How many at once, and how many more each second. Thousands of callers may share a carrier's address,
    /// so these bound what an address costs (at most about 1 % of a core each), and not what one caller may
    /// do.
    var tokens: (most: UInt32, perSecond: UInt32) {
        switch self {
        case .signedRefusal: (most: 1_000, perSecond: 400)
        case .failedVerification: (most: 2_000, perSecond: 1_000)
        case .explanation: (most: 20, perSecond: 2)
        }
    }
}

/// The counters of one address: an IPv4 address, 64 bits of IPv6, or a network of 56 or 48 bits around those.
///
/// One object for an address and process, shared by all loops; every counter is atomic.
package final class AddressRecord: Sendable {
    package let address: NetworkAddress
    let usage: Usage
    /// The network around this one; its budgets are as much larger as its ``Usage/scale`` says.
    let wider: AddressRecord?
    private let signedRefusals: TokenBucket
    private let failedVerifications: TokenBucket
    private let explanations: TokenBucket

    /// A record outside of any table, for tests and for callers without a connection.
    package convenience init(address: NetworkAddress) { self.init(address: address, wider: nil, scale: 1) }

    init(address: NetworkAddress, wider: AddressRecord?, scale: Int) {
        self.address = address
        self.wider = wider
        usage = Usage(wider: wider?.usage, scale: scale)
        signedRefusals = TokenBucket(.signedRefusal, scale: scale)
        failedVerifications = TokenBucket(.failedVerification, scale: scale)
        explanations = TokenBucket(.explanation, scale: scale)
    }

    /// Takes one token; false when the budget of this address, or of a network around it, is used up. `now` is whole
    /// seconds of a monotonic clock, as ``EventLoop/seconds``.
    package func take(_ budget: AddressBudget, now: Int64) -> Bool {
        let isTaken =
            switch budget {
            case .signedRefusal: signedRefusals.take(now: now)
            case .failedVerification: failedVerifications.take(now: now)
            case .explanation: explanations.take(now: now)
            }
        return isTaken && wider?.take(budget, now: now) ?? true
    }

    /// Whether every budget is full again, so that forgetting the record forgives nothing.
    func isRested(now: Int64) -> Bool {
        signedRefusals.isFull(now: now) && failedVerifications.isFull(now: now)
            && explanations.isFull(now: now)
    }
}

/// So many at once, and so many more each second. The second of the last change and the tokens left share one
/// atomic word.
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

    /// The clocks of two loops may differ by a second: time does not run backwards here.
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
