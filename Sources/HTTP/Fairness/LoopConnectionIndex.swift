import CountersignWire

/// The connections of a loop by proof level, to find the connection to evict without examining all of them.
///
/// Confined to the loop. A change of the proof level moves a connection from one list to another; a request
/// with the same proof level changes nothing.
struct LoopConnectionIndex {
    private(set) var unproven = UnprovenConnectionQueue()
    private var releases = ProvenConnectionList()
    private var sessions = ProvenConnectionList()

    /// Connections of trusted proxies carry many clients, and are listed as if they had proved a release.
    mutating func insert(_ connection: Connection, as standing: ConnectionProofLevel, now: Int64) {
        connection.listedStanding = connection.usage.isExempt ? .release : standing
        switch connection.listedStanding {
        case .unproven: unproven.append(connection, of: connection.usage.source.address, now: now)
        case .release: releases.append(connection)
        case .session: sessions.append(connection)
        }
    }

    mutating func remove(_ connection: Connection) {
        switch connection.listedStanding {
        case .unproven: unproven.remove(connection)
        case .release: releases.remove(connection)
        case .session: sessions.remove(connection)
        }
    }

    /// A connection of exactly that proof level that has been idle since `latest` or longer: of a bounded
    /// sample, the one whose party has the most connections, then the longest idle.
    mutating func idle(_ standing: ConnectionProofLevel, since latest: Int64) -> Connection? {
        switch standing {
        case .unproven: nil
        case .release: releases.longestIdle(since: latest)
        case .session: sessions.longestIdle(since: latest)
        }
    }
}

/// Connections in no order; each connection stores its index.
private struct ProvenConnectionList {
    /// Connections that one search examines.
    private static let sample = 64

    private var members: [Connection] = []
    /// Where the next search begins.
    private var cursor = 0

    mutating func append(_ connection: Connection) {
        connection.listedIndex = members.count
        members.append(connection)
    }

    mutating func remove(_ connection: Connection) {
        let last = members.removeLast()
        guard last !== connection else { return }
        members[connection.listedIndex] = last
        last.listedIndex = connection.listedIndex
    }

    mutating func longestIdle(since latest: Int64) -> Connection? {
        var found: (connection: Connection, siblings: Int)?
        for _ in 0..<min(ProvenConnectionList.sample, members.count) {
            cursor = cursor + 1 < members.count ? cursor + 1 : 0
            let connection = members[cursor]
            guard connection.isIdle, connection.idleSince <= latest else { continue }
            let siblings = connection.usage.siblings
            let isFirst = found.map {
                (siblings, $0.connection.idleSince) > ($0.siblings, connection.idleSince)
            }
            if isFirst ?? true { found = (connection, siblings) }
        }
        return found?.connection
    }
}

/// The unproven connections of a loop, and the next of them to evict. Confined to the loop.
///
/// The next one is the connection that has been unproven for longest, of the address (for IPv6, the /48)
/// with the most unproven connections. A change costs the logarithm of the number of addresses, reading the
/// next one constant time. The listener keeps the connections alive.
struct UnprovenConnectionQueue {
    /// A connection's place in the queue, which the connection stores.
    struct Place {
        fileprivate var group: Group?
        fileprivate unowned(unsafe) var previous: Connection?
        fileprivate unowned(unsafe) var next: Connection?
        fileprivate var number: UInt64 = 0
        /// Since when the connection has been unproven, in seconds of the loop's clock.
        fileprivate(set) var since: Int64 = 0
    }

    /// The connections of one address, in the order of arrival.
    fileprivate final class Group {
        let network: NetworkAddress
        var count = 0
        /// The group's index in the heap.
        var index = 0
        unowned(unsafe) var first: Connection?
        unowned(unsafe) var last: Connection?

        init(network: NetworkAddress) { self.network = network }

        /// The group with more connections comes first; of equal groups, the one with the oldest
        /// connection.
        func precedes(_ other: Group) -> Bool {
            if count != other.count { return count > other.count }
            return (first?.unprovenPlace.number ?? 0) < (other.first?.unprovenPlace.number ?? 0)
        }
    }

    private var groups: [NetworkAddress: Group] = [:]
    /// A binary heap: no group precedes its parent.
    private var heap: [Group] = []
    private var appended: UInt64 = 0

    /// The next connection to evict.
    var first: Connection? { heap.first?.first }

    /// The connection of that address that has been unproven for longest.
    func first(of address: NetworkAddress) -> Connection? { groups[address.prefix(bits: 48)]?.first }

    /// The number of connections of the address with the most.
    var most: Int { heap.first?.count ?? 0 }

    mutating func append(_ connection: Connection, of address: NetworkAddress, now: Int64) {
        let network = address.prefix(bits: 48)
        let group = groups[network] ?? insertGroup(network)
        appended &+= 1
        let last = group.last
        connection.unprovenPlace = Place(group: group, previous: last, number: appended, since: now)
        if let last { last.unprovenPlace.next = connection } else { group.first = connection }
        group.last = connection
        group.count += 1
        settle(group)
    }

    /// Removes the connection; does nothing if it is not in the queue.
    mutating func remove(_ connection: Connection) {
        let place = connection.unprovenPlace
        guard let group = place.group else { return }
        let (previous, next) = (place.previous, place.next)
        if let previous { previous.unprovenPlace.next = next } else { group.first = next }
        if let next { next.unprovenPlace.previous = previous } else { group.last = previous }
        connection.unprovenPlace = Place()
        group.count -= 1
        if group.count == 0 { removeGroup(group) } else { settle(group) }
    }

    // MARK: The heap

    private mutating func insertGroup(_ network: NetworkAddress) -> Group {
        let group = Group(network: network)
        groups[network] = group
        group.index = heap.count
        heap.append(group)
        return group
    }

    private mutating func removeGroup(_ group: Group) {
        groups[group.network] = nil
        let last = heap.removeLast()
        guard last !== group else { return }
        place(last, at: group.index)
        settle(last)
    }

    private mutating func place(_ group: Group, at index: Int) {
        heap[index] = group
        group.index = index
    }

    /// Restores the heap's order after a change of the group's rank.
    private mutating func settle(_ group: Group) {
        while group.index > 0 {
            let parent = heap[(group.index - 1) / 2]
            guard group.precedes(parent) else { break }
            swap(group, with: parent)
        }
        while true {
            let left = 2 * group.index + 1
            guard left < heap.count else { return }
            var child = heap[left]
            if left + 1 < heap.count, heap[left + 1].precedes(child) { child = heap[left + 1] }
            guard child.precedes(group) else { return }
            swap(child, with: group)
        }
    }

    private mutating func swap(_ one: Group, with other: Group) {
        let index = one.index
        place(one, at: other.index)
        place(other, at: index)
    }
}
