/// The connections of a loop that have proved nothing, and which of them gives way next. Confined to the
/// loop.
///
/// That is the one that has proved nothing for longest, of the address (of IPv6 a /48) with most such
/// connections. A change costs the logarithm of the number of addresses, and the answer nothing. The listener
/// keeps the connections alive.
struct UnprovenQueue {
    /// What a connection remembers of its place.
    struct Place {
        fileprivate var group: Group?
        fileprivate unowned(unsafe) var previous: Connection?
        fileprivate unowned(unsafe) var next: Connection?
        fileprivate var number: UInt64 = 0
        /// Since when the connection has proved nothing, in seconds of the loop's clock.
        fileprivate(set) var since: Int64 = 0
    }

    /// The connections of one address, in the order in which they came.
    fileprivate final class Group {
        let network: NetworkAddress
        var count = 0
        /// Where it stands in the heap.
        var index = 0
        unowned(unsafe) var first: Connection?
        unowned(unsafe) var last: Connection?

        init(network: NetworkAddress) { self.network = network }

        /// Of groups with as many connections, the one with the oldest comes first.
        func precedes(_ other: Group) -> Bool {
            if count != other.count { return count > other.count }
            return (first?.unprovenPlace.number ?? 0) < (other.first?.unprovenPlace.number ?? 0)
        }
    }

    private var groups: [NetworkAddress: Group] = [:]
    /// A binary heap: no group stands below one that comes after it.
    private var heap: [Group] = []
    private var appended: UInt64 = 0

    /// The connection that gives way next.
    var first: Connection? { heap.first?.first }

    /// How many connections the address with most has.
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

    /// Nothing where the connection is not in the queue.
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

    /// Moves a group whose rank has changed to where it belongs.
    private mutating func settle(_ group: Group) {
        while group.index > 0 {
            let parent = heap[(group.index - 1) / 2]
            guard group.precedes(parent) else { break }
            swap(group, parent)
        }
        while true {
            let left = 2 * group.index + 1
            guard left < heap.count else { return }
            var child = heap[left]
            if left + 1 < heap.count, heap[left + 1].precedes(child) { child = heap[left + 1] }
            guard child.precedes(group) else { return }
            swap(child, group)
        }
    }

    private mutating func swap(_ one: Group, _ other: Group) {
        let index = one.index
        place(one, at: other.index)
        place(other, at: index)
    }
}
