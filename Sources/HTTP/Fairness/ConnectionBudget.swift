import CountersignWire

/// The parties that a connection and its current exchange count to. Confined to their loop; a class, so
/// that reading it copies nothing.
///
/// A connection counts to its address until a request proves a session, and then to that account; a request
/// that proves less moves it back to the address. The connections of trusted proxies count to no party,
/// because each carries many clients; their requests count to the client that the proxy names.
final class ConnectionBudget {
    private let registry: ConnectionRegistry
    private let limits: Limits
    private let peer: AddressRecord
    let isExempt: Bool
    /// The address that the current exchange counts to, and the last address that a proxy named.
    private(set) var source: AddressRecord
    private var named: AddressRecord?
    private var account: (number: Int64, usage: CallerUsage)?
    private(set) var proof: CallerProof?
    private(set) var proofLevel = ConnectionProofLevel.unproven
    /// The party that the connection counts to; nil if none.
    private var owner: CallerUsage?
    private var inFlight: CallerUsage?
    private var reservation: HeldBodyBudget.Reservation?

    /// Takes over a reference to `peer`, and its count of one connection unless `isExempt`.
    init(registry: ConnectionRegistry, limits: Limits, peer: AddressRecord, isExempt: Bool) {
        self.registry = registry
        self.limits = limits
        self.peer = peer
        self.isExempt = isExempt
        source = peer
        owner = isExempt ? nil : peer.usage
    }

    /// The number of connections that count to the same party, including this one.
    var siblings: Int { owner?.value(of: .connections) ?? 0 }

    // MARK: An exchange

    func beginExchange() {
        proof = nil
        if source !== peer { source = peer }
        inFlight = peer.usage
        peer.usage.count(1, of: .requests)
    }

    /// Ends the current exchange; false if the connection must close, because it moves back to its address
    /// and the address is at its limit.
    func endExchange() -> Bool {
        inFlight?.count(-1, of: .requests)
        inFlight = nil
        proofLevel = proof?.proofLevel ?? .unproven
        guard proofLevel != .session, let account, owner === account.usage else { return true }
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

    /// Records the proof of the current exchange; false if the connection must close after this response,
    /// because the account is at its limit.
    func recordProof(_ proof: CallerProof) -> Bool {
        self.proof = proof
        guard case .session(let number) = proof else {
            moveReservation()
            return true
        }
        let usage = usage(of: number)
        move(to: usage)
        moveReservation()
        guard !isExempt, owner !== usage else { return true }
        guard usage.reserve(1, of: .connections, limit: limits.accountConnections) else { return false }
        owner?.count(-1, of: .connections)
        owner = usage
        return true
    }

    private func usage(of number: Int64) -> CallerUsage {
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

    private func move(to usage: CallerUsage) {
        guard let inFlight, inFlight !== usage else { return }
        inFlight.count(-1, of: .requests)
        usage.count(1, of: .requests)
        self.inFlight = usage
    }

    /// Whether the party of the current exchange has more requests in flight than its limit.
    var isOverloaded: Bool {
        guard let inFlight else { return false }
        return inFlight.exceeds(requestLimit(of: inFlight), of: .requests)
    }

    func checkOverload() throws(Refusal) {
        guard isOverloaded, let inFlight else { return }
        let party = account?.usage === inFlight ? "account" : "address"
        throw Refusal(
            .unavailable,
            detail: "this \(party) has more than \(requestLimit(of: inFlight)) requests in flight",
            retryAfter: 1)
    }

    private func requestLimit(of usage: CallerUsage) -> Int {
        account?.usage === usage ? limits.accountRequests : limits.addressRequests
    }

    // MARK: Held bodies

    /// Reserves bytes of a held body; false if a limit of its sender, or of all senders together, is
    /// reached.
    func hold(_ count: Int) -> Bool {
        var booking = self.reservation ?? newReservation()
        guard registry.held.add(count, to: &booking, limits: limits) else { return false }
        self.reservation = booking
        return true
    }

    /// Moves the bytes that were reserved before the proof to the party that was proved. If that party is
    /// at its limit, the bytes stay reserved for the earlier party.
    private func moveReservation() {
        guard let old = reservation else { return }
        var new = newReservation()
        guard registry.held.add(old.count, to: &new, limits: limits) else { return }
        registry.held.remove(old)
        reservation = new
    }

    private func newReservation() -> HeldBodyBudget.Reservation {
        switch proof {
        case nil: HeldBodyBudget.Reservation(usage: source.usage, proofLevel: .unproven)
        case .release: HeldBodyBudget.Reservation(usage: source.usage, proofLevel: .release)
        case .session: HeldBodyBudget.Reservation(usage: account?.usage ?? source.usage, proofLevel: .session)
        }
    }

    func releaseHeld() {
        guard let reservation else { return }
        registry.held.remove(reservation)
        self.reservation = nil
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
