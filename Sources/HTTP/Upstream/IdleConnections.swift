/// A pool's connections that carry no request. Confined to the pool's loop.
///
/// Those that became idle in an earlier turn come first: the poller has watched them since, and has told of
/// any input. Of a connection that became idle in this turn it has not.
struct IdleConnections {
    struct Entry {
        let connection: UpstreamConnection
        /// When it became idle, in nanoseconds of the monotonic clock.
        let since: Int64
    }

    private var entries: [Entry] = []
    /// The number of entries, at the beginning, of turns before `turn`.
    private var polled = 0
    private var turn: UInt64 = 0

    var count: Int { entries.count }

    mutating func append(_ connection: UpstreamConnection, since: Int64, in turn: UInt64) {
        begin(turn)
        entries.append(Entry(connection: connection, since: since))
    }

    /// Whether the poller has watched a connection since it became idle.
    enum Watch { case polled, unpolled }

    /// Removes the connection that became idle last, of those that the poller has watched since if there are
    /// any.
    mutating func takeLast(in turn: UInt64) -> (entry: Entry, watch: Watch)? {
        begin(turn)
        guard polled > 0 else { return entries.popLast().map { ($0, .unpolled) } }
        polled -= 1
        let last = entries.count - 1
        if polled < last { entries.swapAt(polled, last) }
        return (entries.removeLast(), .polled)
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

/// What must be known of an idle connection before a request is sent on it.
enum IdleCheck {
    /// No input has arrived: the socket is asked, by a system call.
    case socket
    /// No input had arrived when this turn began, if the last poll shows that; the socket is asked
    /// otherwise. For a request that is sent again if the connection turns out to be closed.
    case lastPoll
    /// As `lastPoll` if the connection became idle at most a second ago; as `socket` otherwise. For a request
    /// that must not be sent twice and has no `Idempotency-Key`.
    case lastPollIfRecent

    /// In nanoseconds. Servers mostly keep an idle connection open for longer than this.
    private static let recentTime: Int64 = 1_000_000_000

    /// Whether the word of the poller, which has watched the connection, is sufficient. `now` is in
    /// nanoseconds of the monotonic clock.
    func trustsPoll(of entry: IdleConnections.Entry, at now: Int64) -> Bool {
        switch self {
        case .socket: false
        case .lastPoll: true
        case .lastPollIfRecent: now - entry.since <= IdleCheck.recentTime
        }
    }
}
