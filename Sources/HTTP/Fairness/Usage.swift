import Synchronization

/// What one party uses of the server at this moment: an address, a network of addresses, or an account.
///
/// One object for a party and process, shared by all loops; every counter is atomic.
package final class Usage: Sendable {
    /// Open connections that count to this party.
    let connections = Atomic<Int>(0)
    /// Requests between their head and the end of their answer.
    let requests = Atomic<Int>(0)
    /// Bytes of bodies that are held before a signature was verified, and after.
    let unprovenBytes = Atomic<Int>(0)
    let provenBytes = Atomic<Int>(0)
    /// Connections and exchanges that hold a reference: the table forgets the party only at 0.
    let users = Atomic<Int>(0)
    /// The network around this one, which counts the same things.
    let wider: Usage?
    /// How many times a subscriber's limit this party may have: a network is more than one subscriber.
    let scale: Int

    init(wider: Usage? = nil, scale: Int = 1) {
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

    /// Counts `amount` here and in the networks around; false, and nothing counted, where one of them would go beyond
    /// `limit` times its scale.
    func reserve(_ amount: Int, of counter: Counter, limit: Int) -> Bool {
        guard add(amount, to: counter) <= Usage.scaled(limit, by: scale) else {
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
        value(of: counter) > Usage.scaled(limit, by: scale) || (wider?.exceeds(limit, of: counter) ?? false)
    }

    private static func scaled(_ limit: Int, by scale: Int) -> Int {
        let (product, overflow) = limit.multipliedReportingOverflow(by: scale)
        return overflow ? .max : product
    }
}
