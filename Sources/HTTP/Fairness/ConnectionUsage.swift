import CountersignWire

/// Whom a connection and its present exchange count to. Confined to their loop; a class, so that asking it
/// copies nothing.
///
/// A connection counts to its address until a request proves a session, and to that account from then on; what a request that
/// proves less brings it back. The connections of trusted proxies count to nobody, for each carries many clients; their requests
/// count to the client that the proxy names.
final class ConnectionUsage {
    private let registry: ConnectionRegistry
    private let limits: Limits
    private let peer: AddressRecord
    let isExempt: Bool
    /// The address that the present exchange counts to, and the last one that a proxy named.
    private(set) var source: AddressRecord
    private var named: AddressRecord?
    private var account: (number: Int64, usage: Usage)?
    private(set) var proof: CallerProof?
    private(set) var standing = ConnectionStanding.unproven
    /// Whom the connection counts to; nil for nobody.
    private var owner: Usage?
    private var inFlight: Usage?
    private var booking: HeldBytes.Booking?

    /// Takes over a reference to `peer`, and its count of one connection unless `isExempt`.
    init(registry: ConnectionRegistry, limits: Limits, peer: AddressRecord, isExempt: Bool) {
        self.registry = registry
        self.limits = limits
        self.peer = peer
        self.isExempt = isExempt
        source = peer
        owner = isExempt ? nil : peer.usage
    }

    /// Connections that count to the same party as this one.
    var siblings: Int { owner?.value(of: .connections) ?? 0 }

    // MARK: An exchange

    func beginExchange() {
        proof = nil
        source = peer
        inFlight = peer.usage
        peer.usage.count(1, of: .requests)
    }

    /// False where the connection must end, because it counts to its address again, which has as many as it may.
    func endExchange() -> Bool {
        inFlight?.count(-1, of: .requests)
        inFlight = nil
        standing = proof?.standing ?? .unproven
        guard standing != .session, let account, owner === account.usage else { return true }
        account.usage.count(-1, of: .connections)
        guard peer.usage.reserve(1, of: .connections, limit: limits.effectiveAddressConnections) else {
            owner = nil
            return false
        }
        owner = peer.usage
        return true
    }

    func attribute(to address: NetworkAddress, now: Int64) {
        let subscriber = address.subscriber
        guard subscriber != source.address else { return }
        if subscriber == peer.address {
            source = peer
        } else if let named, named.address == subscriber {
            source = named
        } else {
            if let named { registry.addresses.release(named) }
            let record = registry.addresses.acquire(subscriber, now: now)
            (source, named) = (record, record)
        }
        move(to: source.usage)
    }

    /// False where the connection must end after this answer, because the account has as many as it may.
    func recordProof(_ proof: CallerProof) -> Bool {
        self.proof = proof
        guard case .session(let number) = proof else {
            rebook()
            return true
        }
        let usage = usage(of: number)
        move(to: usage)
        rebook()
        guard !isExempt, owner !== usage else { return true }
        guard usage.reserve(1, of: .connections, limit: limits.accountConnections) else { return false }
        owner?.count(-1, of: .connections)
        owner = usage
        return true
    }

    private func usage(of number: Int64) -> Usage {
        if let account, account.number == number { return account.usage }
        if let account {
            if owner === account.usage {
                account.usage.count(-1, of: .connections)
                owner = nil
            }
            registry.accounts.release(account.usage)
        }
        let usage = registry.accounts.acquire(number)
        account = (number, usage)
        return usage
    }

    private func move(to usage: Usage) {
        guard let inFlight, inFlight !== usage else { return }
        inFlight.count(-1, of: .requests)
        usage.count(1, of: .requests)
        self.inFlight = usage
    }

    /// Whether the present exchange's party has more requests in flight than it may.
    var isOverloaded: Bool {
        guard let inFlight else { return false }
        return inFlight.exceeds(requestLimit(of: inFlight), of: .requests)
    }

    func checkOverload() throws(Refusal) {
        guard isOverloaded, let inFlight else { return }
        let party = account?.usage === inFlight ? "account" : "address"
        throw Refusal(
            .unavailable, "this \(party) has more than \(requestLimit(of: inFlight)) requests in flight", retryAfter: 1)
    }

    private func requestLimit(of usage: Usage) -> Int {
        account?.usage === usage ? limits.accountRequests : limits.addressRequests
    }

    // MARK: Held bodies

    /// Books bytes of a body that is held; false where its sender, or all together, hold as much as they may.
    func hold(_ count: Int) -> Bool {
        var booking = self.booking ?? newBooking()
        guard registry.held.add(count, to: &booking, limits: limits) else { return false }
        self.booking = booking
        return true
    }

    /// Bytes that were held before anything was proved count to who it was then.
    private func rebook() {
        guard let old = booking else { return }
        var new = newBooking()
        guard registry.held.add(old.count, to: &new, limits: limits) else { return }
        registry.held.remove(old)
        booking = new
    }

    private func newBooking() -> HeldBytes.Booking {
        switch proof {
        case nil: HeldBytes.Booking(usage: source.usage, standing: .unproven)
        case .release: HeldBytes.Booking(usage: source.usage, standing: .release)
        case .session: HeldBytes.Booking(usage: account?.usage ?? source.usage, standing: .session)
        }
    }

    func releaseHeld() {
        guard let booking else { return }
        registry.held.remove(booking)
        self.booking = nil
    }

    // MARK: The end

    func end() {
        releaseHeld()
        inFlight?.count(-1, of: .requests)
        owner?.count(-1, of: .connections)
        (inFlight, owner) = (nil, nil)
        if let account { registry.accounts.release(account.usage) }
        if let named { registry.addresses.release(named) }
        registry.addresses.release(peer)
    }
}
