/// A pool's connections that carry no request. Confined to the pool's loop.
///
/// Those that became idle in an earlier turn come first: the poller has watched them since, and has told of
/// any input. Of a connection that became idle in this turn it has not.
struct IdleConnections {
    struct Entry {
        let connection: UpstreamConnection
        /// When it is closed unless it is used: seconds of the loop's clock.
        let until: Int64
    }

    private var entries: [Entry] = []
    /// The number of entries, at the beginning, of turns before `turn`.
    private var polled = 0
    private var turn: UInt64 = 0

    var count: Int { entries.count }

    mutating func append(_ connection: UpstreamConnection, until: Int64, in turn: UInt64) {
        begin(turn)
        entries.append(Entry(connection: connection, until: until))
    }

    /// Whether the poller has watched a connection since it became idle.
    enum Watch { case polled, unpolled }

    /// Removes the connection that became idle last, of those that the poller has watched since if there are
    /// any.
    mutating func takeLast(in turn: UInt64) -> (connection: UpstreamConnection, watch: Watch)? {
        begin(turn)
        guard polled > 0 else { return entries.popLast().map { ($0.connection, .unpolled) } }
        polled -= 1
        let last = entries.count - 1
        if polled < last { entries.swapAt(polled, last) }
        return (entries.removeLast().connection, .polled)
    }

    mutating func removeAll(where isRemoved: (Entry) -> Bool) {
        let before = entries.count
        entries.removeAll(where: isRemoved)
        // Which of them are gone is not known.
        if entries.count < before { polled = 0 }
    }

    private mutating func begin(_ turn: UInt64) {
        guard turn != self.turn else { return }
        self.turn = turn
        polled = entries.count
    }
}
