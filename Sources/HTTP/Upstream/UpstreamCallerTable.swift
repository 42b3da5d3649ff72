import CountersignWire

/// The party that a request counts to when requests wait for the upstream.
package enum UpstreamCaller: Hashable, Sendable {
    case account(Int64)
    case address(NetworkAddress)
}

/// The connections of a pool that one caller holds: an account, an address, or the /56 or /48 network
/// around addresses.
///
/// Confined to the pool's loop. One object per caller with client connections there, which keep it between
/// requests.
final class UpstreamCallerUsage {
    let caller: UpstreamCaller
    /// The network around this one; it counts the same connections.
    private let wider: UpstreamCallerUsage?
    /// The number of shares that the caller may have: 2 for an IPv6 /56, 4 for a /48, otherwise 1.
    private let scale: Int
    private let table: UpstreamCallerTable
    private var held = 0
    /// The held connections that are about to be given up.
    private var ending = 0
    private var users = 1

    fileprivate init(
        caller: UpstreamCaller, wider: UpstreamCallerUsage?, scale: Int, table: UpstreamCallerTable
    ) {
        self.caller = caller
        self.wider = wider
        self.scale = scale
        self.table = table
    }

    /// Counts connections taken, or given back.
    func count(_ amount: Int) {
        held += amount
        wider?.count(amount)
    }

    func countEnding(_ amount: Int) {
        ending += amount
        wider?.countEnding(amount)
    }

    /// The connections held, divided by the scale; or the load of a network around it, if that is higher.
    var load: Int { max(held / scale, wider?.load ?? 0) }

    /// Whether this party or a network around it holds more than `share` times its scale.
    func exceeds(_ share: Int) -> Bool { held - ending > share * scale || wider?.exceeds(share) ?? false }

    fileprivate func retain() { users += 1 }

    /// Call once for each ``UpstreamCallerTable/acquire(_:)``.
    func release() {
        users -= 1
        guard users == 0 else { return }
        table.forget(self)
        wider?.release()
    }
}

extension UpstreamCallerUsage: Hashable {
    static func == (left: UpstreamCallerUsage, right: UpstreamCallerUsage) -> Bool { left === right }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The parties of one pool. Confined to its loop.
final class UpstreamCallerTable {
    private var parties: [UpstreamCaller: UpstreamCallerUsage] = [:]

    /// Returns the usage of a caller; it is in use until ``UpstreamCallerUsage/release()``.
    func acquire(_ caller: UpstreamCaller) -> UpstreamCallerUsage {
        if let known = parties[caller] {
            known.retain()
            return known
        }
        let (network, scale) = UpstreamCallerTable.surroundings(of: caller)
        let party = UpstreamCallerUsage(
            caller: caller, wider: network.map { acquire(.address($0)) }, scale: scale, table: self)
        parties[caller] = party
        return party
    }

    fileprivate func forget(_ party: UpstreamCallerUsage) { parties[party.caller] = nil }

    private static func surroundings(of caller: UpstreamCaller) -> (wider: NetworkAddress?, scale: Int) {
        guard case .address(let address) = caller, address.isIPv6 else { return (nil, 1) }
        return switch address.bits {
        case ...48: (nil, 4)
        case ...56: (address.prefix(bits: 48), 2)
        default: (address.prefix(bits: 56), 1)
        }
    }
}
