/// Whose turn it is where requests wait for the upstream.
package enum UpstreamCaller: Hashable, Sendable {
    case account(Int64)
    case address(NetworkAddress)
}

/// What one caller holds of a pool's connections: an account, an address, or a network of 56 or 48 bits
/// around addresses.
///
/// Confined to the pool's loop. One object for each caller that has client connections there, which keep it
/// from one request to the next.
final class UpstreamParty {
    let caller: UpstreamCaller
    /// The network around this one, which counts the same connections.
    private let wider: UpstreamParty?
    /// How many shares it may have: 2 for 56 bits of IPv6, 4 for 48.
    private let scale: Int
    private let table: UpstreamPartyTable
    private var held = 0
    /// Of those held, connections that are about to be given up.
    private var ending = 0
    private var users = 1

    fileprivate init(caller: UpstreamCaller, wider: UpstreamParty?, scale: Int, table: UpstreamPartyTable) {
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

    /// Connections held, as many times fewer as there may be shares; of the networks around, the most.
    var load: Int { max(held / scale, wider?.load ?? 0) }

    /// Whether this party or a network around it holds more than `share` times its scale.
    func exceeds(_ share: Int) -> Bool { held - ending > share * scale || wider?.exceeds(share) ?? false }

    fileprivate func retain() { users += 1 }

    /// Once for each ``UpstreamPartyTable/acquire(_:)``.
    func release() {
        users -= 1
        guard users == 0 else { return }
        table.forget(self)
        wider?.release()
    }
}

extension UpstreamParty: Hashable {
    static func == (left: UpstreamParty, right: UpstreamParty) -> Bool { left === right }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The parties of one pool. Confined to its loop.
final class UpstreamPartyTable {
    private var parties: [UpstreamCaller: UpstreamParty] = [:]

    /// In use until ``UpstreamParty/release()``.
    func acquire(_ caller: UpstreamCaller) -> UpstreamParty {
        if let known = parties[caller] {
            known.retain()
            return known
        }
        let (network, scale) = UpstreamPartyTable.surroundings(of: caller)
        let party = UpstreamParty(
            caller: caller, wider: network.map { acquire(.address($0)) }, scale: scale, table: self)
        parties[caller] = party
        return party
    }

    fileprivate func forget(_ party: UpstreamParty) { parties[party.caller] = nil }

    private static func surroundings(of caller: UpstreamCaller) -> (wider: NetworkAddress?, scale: Int) {
        guard case .address(let address) = caller, address.isIPv6 else { return (nil, 1) }
        return switch address.bits {
        case ...48: (nil, 4)
        case ...56: (address.prefix(bits: 48), 2)
        default: (address.prefix(bits: 56), 1)
        }
    }
}
