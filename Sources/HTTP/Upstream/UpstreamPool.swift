import CountersignWire

/// How many connections to the upstream one loop may have, and how many requests may wait for one.
package struct UpstreamLimits: Sendable, Equatable {
    /// Connections that are open, opening or idle.
    package var connections: Int
    /// Requests that wait while all connections are in use.
    package var waiting: Int

    package init(connections: Int = 1_024, waiting: Int = 1_024) {
        self.connections = connections
        self.waiting = waiting
    }

    /// The part of loop number `index` of `count`. The parts add up to the whole.
    package func part(_ index: Int, of count: Int) -> UpstreamLimits {
        func part(of whole: Int) -> Int { whole / count + (index < whole % count ? 1 : 0) }
        return UpstreamLimits(connections: part(of: connections), waiting: part(of: waiting))
    }
}

/// A loop's connections to the upstream. Confined to that loop.
///
/// A request takes an idle connection, the most recently used one first; else it opens one; else, at the
/// limit, it waits for the next that becomes free. While requests wait, no connection is idle.
package final class UpstreamPool: @unchecked Sendable {
    private static let mostIdle = 256
    private static let idleSeconds: Int64 = 55

    let target: UpstreamTarget
    let loop: EventLoop
    let deadlines: Deadlines
    private let limits: UpstreamLimits
    private let dialer: UpstreamDialer
    private var idle: [(connection: UpstreamConnection, until: Int64)] = []
    /// Connections that are open or opening, the idle ones included.
    private var open = 0
    private var waiting: FairQueue<UpstreamCaller, Waiter>
    private var generation: Int
    /// When the last answer began, on the loop's clock.
    private var lastAnswer: Int64 = 0
    private var toldAnswer: Int64 = 0

    /// On the loop, or before it starts. `limits` are this loop's own.
    package init(
        target: UpstreamTarget, loop: EventLoop, limits: UpstreamLimits = UpstreamLimits(), deadlines: Deadlines
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

    // MARK: Taking a connection

    /// An idle connection on which nothing has arrived.
    ///
    /// The poller's word alone does not do: one poll reports a limited number of descriptors (libevent asks for 32 at
    /// first), and knows nothing of what came after it. So the socket itself is asked, at the last moment.
    func takeIdle() -> UpstreamConnection? {
        while let connection = idle.popLast()?.connection {
            if connection.stream.isQuiet() { return connection }
            close(connection)
        }
        return nil
    }

    /// A new connection, or the next that becomes free.
    func takeAnother(for caller: UpstreamCaller) async throws(Refusal) -> UpstreamConnection {
        if open < limits.connections {
            open += 1
            return try await connect()
        }
        let until = loop.seconds + Int64(deadlines.upstreamConnect) + 1
        let grant = await withUnsafeContinuation { continuation in
            let refused = waiting.append(Waiter(continuation: continuation, until: until), of: caller)
            refused?.continuation.resume(returning: .refused(.queueFull))
        }
        switch grant {
        case .connection(let connection):
            if connection.stream.isQuiet() { return connection }
            return try await replace(connection)
        case .place: return try await connect()
        case .refused(let reason):
            let detail =
                switch reason {
                case .queueFull: "too many requests wait for \(target.host)"
                case .waitedTooLong: "no connection to \(target.host) became free within \(deadlines.upstreamConnect) s"
                }
            throw Refusal(.unavailable, detail, retryAfter: 1)
        }
    }

    /// A new connection in the place of one that has died.
    func replace(_ connection: UpstreamConnection) async throws(Refusal) -> UpstreamConnection {
        connection.stream.close()
        return try await connect()
    }

    /// Within a place that is counted already; gives it up where no connection comes about.
    private func connect() async throws(Refusal) -> UpstreamConnection {
        do throws(Refusal) {
            let connection = try await dialer.connect()
            // The first connection under settings that were reloaded comes before the tick that would notice them.
            generation = max(generation, connection.generation)
            return connection
        } catch {
            open -= 1
            grantPlaces()
            throw error
        }
    }

    // MARK: Giving it back

    /// After an answer that ended where it should, with nothing of it left unread.
    func giveBack(_ connection: UpstreamConnection) {
        let stream = connection.stream
        // What OpenSSL read behind the answer is either a message of TLS itself or an answer to no request.
        guard !stream.isClosed, connection.generation == generation, !stream.hasBufferedInput || stream.isQuiet()
        else { return close(connection) }
        var connection = connection
        connection.hasServed = true
        if let waiter = waiting.popFirst() { return waiter.continuation.resume(returning: .connection(connection)) }
        guard idle.count < UpstreamPool.mostIdle else { return close(connection) }
        stream.armRead()
        idle.append((connection, loop.seconds + UpstreamPool.idleSeconds))
    }

    /// Closes a connection that was taken.
    func close(_ connection: UpstreamConnection) {
        connection.stream.close()
        open -= 1
        grantPlaces()
    }

    private func grantPlaces() {
        while open < limits.connections, let waiter = waiting.popFirst() {
            open += 1
            waiter.continuation.resume(returning: .place)
        }
    }

    /// An answer has begun: the upstream lives.
    func didAnswer() { lastAnswer = loop.seconds }

    // MARK: Once a second

    private func tick() {
        generation = target.generation
        if lastAnswer > toldAnswer {
            toldAnswer = lastAnswer
            target.didAnswer(at: lastAnswer)
        }
        let now = loop.seconds
        let late = waiting.removeFirst { $0.until <= now }
        for waiter in late { waiter.continuation.resume(returning: .refused(.waitedTooLong)) }
        sweep(now)
    }

    private func sweep(_ now: Int64) {
        idle.removeAll { connection, until in
            let stream = connection.stream
            var isUsable = until > now && connection.generation == generation
            if isUsable, stream.hasUnreadSignal {
                // A message of TLS's own is no reason to close; it was read by the question.
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

/// Whose turn it is where requests wait for the upstream.
package enum UpstreamCaller: Hashable, Sendable {
    case account(Int64)
    case address(NetworkAddress)
}

private struct Waiter {
    let continuation: UnsafeContinuation<UpstreamGrant, Never>
    /// On the loop's clock.
    let until: Int64
}

private enum UpstreamGrant {
    enum Reason { case queueFull, waitedTooLong }

    case connection(UpstreamConnection)
    /// A connection may be opened; it is counted already.
    case place
    case refused(Reason)
}
