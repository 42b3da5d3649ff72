import CountersignMemory
import CountersignWire

/// The limits on connections to the upstream and on requests that wait for one, of a process or of one
/// loop.
package struct UpstreamLimits: Sendable, Equatable {
    /// Connections that are open, opening or idle.
    package var connections: Int
    /// Requests that wait while all connections are in use.
    package var waiting: Int

    package init(connections: Int = 1_024, waiting: Int = 1_024) {
        self.connections = connections
        self.waiting = waiting
    }

    /// The part of loop number `index` of `count`. The parts add up to the process's limits.
    package func part(_ index: Int, of count: Int) -> UpstreamLimits {
        func part(of whole: Int) -> Int { whole / count + (index < whole % count ? 1 : 0) }
        return UpstreamLimits(connections: part(of: connections), waiting: part(of: waiting))
    }
}

/// A loop's connections to the upstream. Confined to that loop.
///
/// A request takes the most recently used idle connection; if there is none, it opens one; at the limit, it
/// waits for the next free connection. While requests wait, no connection is idle. Of the waiting callers,
/// the pool serves the one that holds the fewest connections first; see ``endTransfers(now:)`` for
/// connections that do not become free.
///
/// Safe to share: mutable state is accessed only on the loop, where the tasks that use it run; a pool is
/// created there, or before the loop starts.
package final class UpstreamPool: @unchecked Sendable {
    private static let mostIdle = 256
    private static let idleSeconds: Int64 = 55

    package let target: UpstreamTarget
    let loop: EventLoop
    private(set) var deadlines: Deadlines
    private var limits: UpstreamLimits
    private var dialer: UpstreamDialer
    private var idle = IdleConnections()
    /// Connections that are open or opening, including idle ones.
    private var open = 0
    private var waiting: FairQueue<UpstreamCallerUsage, Waiter>
    private let parties = UpstreamCallerTable()
    /// Streamed bodies and long responses in progress; each stores its index.
    private var transfers: [ClientTransfer] = []
    /// That of the target, as of the last tick, reload or new connection.
    private var generation: Int {
        // A response of an earlier destination says nothing about the current one.
        didSet { if generation != oldValue { toldAnswer = lastAnswer } }
    }
    /// When the last response of the current destination began, on the loop's clock.
    private var lastAnswer: Int64 = 0
    /// The last such time that the target knows.
    private var toldAnswer: Int64 = 0
    package let usage = UpstreamPoolUsage()

    /// Called on the loop, or before it starts. `limits` are those of this loop.
    package init(
        target: UpstreamTarget, loop: EventLoop, limits: UpstreamLimits = UpstreamLimits(),
        deadlines: Deadlines
    ) {
        self.target = target
        self.loop = loop
        self.limits = limits
        self.deadlines = deadlines
        dialer = UpstreamDialer(target: target, loop: loop, patience: deadlines.upstreamConnect)
        waiting = FairQueue(limit: limits.waiting)
        generation = target.generation
        loop.onTick { [self] in tick() }
    }

    /// Replaces the settings, of this loop, and closes the idle connections to a destination that the target
    /// no longer has. Called on the loop.
    package func replace(limits: UpstreamLimits, deadlines: Deadlines) {
        self.limits = limits
        self.deadlines = deadlines
        dialer.patience = deadlines.upstreamConnect
        waiting.limit = limits.waiting
        generation = target.generation
        sweep(loop.seconds)
    }

    // MARK: Taking a connection

    /// The party that the upstream connections of `connection`'s requests count to, looked up when it
    /// changes. `caller` is nil for the client's address.
    func callerUsage(of connection: Connection, as caller: UpstreamCaller?) -> UpstreamCallerUsage {
        let caller = caller ?? .address(connection.source.address)
        if let known = connection.upstreamCallerUsage, known.caller == caller { return known }
        connection.upstreamCallerUsage?.release()
        let party = parties.acquire(caller)
        connection.upstreamCallerUsage = party
        return party
    }

    /// Takes an idle connection on which no input has arrived.
    ///
    /// Of a connection that became idle in this turn, the poller has not said anything yet. Nor is its
    /// silence always sufficient for a request that must not be sent twice, because input may arrive after
    /// the poll (docs/decisions/0090-idle-connections.md, 0094-recent-connections.md).
    func takeIdle(for party: UpstreamCallerUsage, by check: IdleCheck) -> UpstreamConnection? {
        while let (entry, watch) = idle.takeLast(in: loop.turn) {
            let stream = entry.connection.stream
            let isTrusted = watch == .polled && check.trustsPoll(of: entry, at: loop.jobBegan)
            if (isTrusted && isQuietByPoll(stream)) || stream.isQuiet() {
                party.count(1)
                return entry.connection
            }
            stream.close()
            open -= 1
            grantPlaces()
        }
        return nil
    }

    /// Whether the last poll shows that a connection which it has watched had no input. False if unknown.
    private func isQuietByPoll(_ stream: Stream) -> Bool {
        !stream.isClosed && !stream.hasUnreadSignal && !stream.hasBufferedInput && loop.hasReportedAllInput
    }

    /// Takes a new connection, or the next that becomes free.
    func takeAnother(for party: UpstreamCallerUsage) async throws(Refusal) -> UpstreamConnection {
        if open < limits.connections {
            open += 1
            party.count(1)
            return try await connect(for: party)
        }
        let now = loop.seconds
        let until = now + Int64(deadlines.upstreamConnect) + 1
        let grant = await withUnsafeContinuation { continuation in
            let waiter = Waiter(continuation: continuation, party: party, since: now, until: until)
            let refused = waiting.append(waiter, of: party)
            refused?.continuation.resume(returning: .refused(.queueFull))
        }
        switch grant {
        case .connection(let connection):
            if connection.stream.isQuiet() { return connection }
            return try await replace(connection, of: party)
        case .place: return try await connect(for: party)
        case .refused(let reason):
            let detail =
                switch reason {
                case .queueFull: "too many requests wait for \(target.host)"
                case .waitedTooLong:
                    "no connection to \(target.host) became free within \(deadlines.upstreamConnect) s"
                }
            throw Refusal(.unavailable, detail: detail, retryAfter: 1)
        }
    }

    /// Opens a new connection in the place of one that the peer has closed.
    func replace(
        _ connection: UpstreamConnection, of party: UpstreamCallerUsage
    ) async throws(Refusal) -> UpstreamConnection {
        connection.stream.close()
        return try await connect(for: party)
    }

    /// Opens a connection for a place that is counted already; gives up the place on failure.
    private func connect(for party: UpstreamCallerUsage) async throws(Refusal) -> UpstreamConnection {
        do {
            let connection = try await dialer.connect()
            // The first connection under reloaded settings may open before the tick that notices them.
            generation = max(generation, connection.generation)
            return connection
        } catch {
            open -= 1
            party.count(-1)
            grantPlaces()
            throw error
        }
    }

    // MARK: Giving it back

    /// Takes back a connection after a response that ended regularly and was read completely.
    func giveBack(_ connection: UpstreamConnection, of party: UpstreamCallerUsage) {
        let stream = connection.stream
        // Input that OpenSSL read after the response is either a TLS message or an unsolicited response.
        guard !stream.isClosed, connection.generation == generation,
            !stream.hasBufferedInput || stream.isQuiet()
        else { return close(connection, of: party) }
        var connection = connection
        connection.hasServed = true
        if !waiting.isEmpty {
            party.count(-1)
            return grant(.connection(connection))
        }
        guard idle.count < UpstreamPool.mostIdle else { return close(connection, of: party) }
        party.count(-1)
        stream.armRead()
        idle.append(connection, since: loop.jobBegan, in: loop.turn)
    }

    /// Closes a connection that was taken.
    func close(_ connection: UpstreamConnection, of party: UpstreamCallerUsage) {
        connection.stream.close()
        open -= 1
        party.count(-1)
        grantPlaces()
    }

    private func grantPlaces() {
        while open < limits.connections, !waiting.isEmpty {
            open += 1
            grant(.place)
        }
    }

    /// Grants to the first request of the caller that holds the fewest connections.
    private func grant(_ grant: UpstreamGrant) {
        guard let waiter = waiting.popFirst(by: { $0.load }) else { return }
        waiter.party.count(1)
        waiter.continuation.resume(returning: grant)
    }

    /// Records that a response has begun, which shows that the upstream is up. `generation` is that of the
    /// connection: one to an earlier destination shows nothing about the current one.
    func didAnswer(from generation: Int) { didAnswer(from: generation, at: loop.seconds) }

    func didAnswer(from generation: Int, at time: Int64) {
        if generation == self.generation { lastAnswer = time }
    }

    /// Called once a second.
    func tick() {
        generation = target.generation
        if lastAnswer > toldAnswer {
            toldAnswer = lastAnswer
            target.didAnswer(at: lastAnswer, from: generation)
        }
        let now = loop.seconds
        let late = waiting.removeFirst { $0.until <= now }
        for waiter in late { waiter.continuation.resume(returning: .refused(.waitedTooLong)) }
        sweep(now)
        endTransfers(now: now)
        usage.set(UpstreamPoolUsage.Figures(open: open, idle: idle.count, waiting: waiting.count))
    }

    // MARK: Connections that clients hold

    func add(_ transfer: ClientTransfer) {
        transfer.place = transfers.count
        transfers.append(transfer)
    }

    func remove(_ transfer: ClientTransfer) {
        guard let last = transfers.popLast(), last !== transfer else { return }
        last.place = transfer.place
        transfers[transfer.place] = last
    }

    /// Seconds that a request waits before the pool ends a slow transfer for it, and before it ends a fast
    /// one.
    private static let slowPatience: Int64 = 1
    private static let fastPatience: Int64 = 3

    /// Makes room for waiting requests of parties below their share, an eighth of the connections. First
    /// ends the slowest transfers: slow ones of parties that hold more connections than a waiting party
    /// would, and others of parties above their share. Then ends transfers of any party that hardly move.
    private func endTransfers(now: Int64) {
        for transfer in transfers { transfer.measure() }
        guard !waiting.isEmpty, !transfers.isEmpty else { return }
        let share = max(1, limits.connections / 8)
        var (wanted, urgent, leastLoad) = (0, 0, Int.max - 1)
        waiting.forEach { waiter in
            guard waiter.since <= now - UpstreamPool.slowPatience, !waiter.party.exceeds(share - 1)
            else { return }
            wanted += 1
            leastLoad = min(leastLoad, waiter.party.load)
            if waiter.since <= now - UpstreamPool.fastPatience { urgent += 1 }
        }
        guard wanted > 0 else { return }
        let slowestFirst = transfers.filter { !$0.isEnding }.sorted { $0.rate < $1.rate }
        for transfer in slowestFirst where wanted > 0 {
            let fairLoad = transfer.isSlow ? leastLoad + 1 : share
            guard transfer.isSlow || urgent > 0, transfer.party.exceeds(fairLoad) else { continue }
            transfer.end()
            wanted -= 1
            urgent -= 1
        }
        for transfer in slowestFirst where wanted > 0 && transfer.hardlyMoves {
            transfer.end()
            wanted -= 1
        }
    }

    private func sweep(_ now: Int64) {
        idle.removeAll { entry in
            let connection = entry.connection
            let until = entry.since / 1_000_000_000 + UpstreamPool.idleSeconds
            let stream = connection.stream
            var isUsable =
                until > now && connection.generation == generation && open <= limits.connections
            if isUsable, stream.hasUnreadSignal {
                // A TLS message is no reason to close; `isQuiet()` has consumed it.
                isUsable = stream.isQuiet()
                if isUsable { stream.armRead() }
            }
            if !isUsable {
                stream.close()
                open -= 1
            }
            return !isUsable
        }
        grantPlaces()
    }
}

/// A loop's connections to the upstream as of its last tick, for the metrics.
package final class UpstreamPoolUsage: Sendable {
    package struct Figures: Sendable, Equatable {
        /// Connections that are open or opening, including idle ones.
        package var open = 0
        package var idle = 0
        /// Requests that wait for a connection.
        package var waiting = 0
    }

    private let cell = Locked(Figures())

    package var figures: Figures { cell.with { $0 } }

    func set(_ figures: Figures) { cell.with { $0 = figures } }
}

private struct Waiter {
    let continuation: UnsafeContinuation<UpstreamGrant, Never>
    let party: UpstreamCallerUsage
    /// Seconds of the loop's clock.
    let since: Int64
    let until: Int64
}

private enum UpstreamGrant {
    enum Reason { case queueFull, waitedTooLong }

    case connection(UpstreamConnection)
    /// The request may open a connection, which is counted already.
    case place
    case refused(Reason)
}
