import CEvent
import CountersignWire
import Glibc
import Synchronization

/// A loop's listening socket and the connections that it accepted. Every loop has one on the same port, and
/// the kernel distributes the connections among them. Confined to its loop.
package final class Listener: @unchecked Sendable {
    /// The settings that all listeners of one port share.
    package struct Settings: Sendable {
        package var limits: Limits
        package var deadlines: Deadlines
        package var tls: TLSContext?
        package var rules: HeadRules
        /// Whether an address is a trusted proxy, whose connections carry many clients and count to no
        /// address.
        package var isTrustedProxy: @Sendable (NetworkAddress) -> Bool = { _ in false }
        /// Whether trusted proxies begin their connections with a PROXY header.
        package var proxyProtocol = ProxyProtocol.off
        package var servingPath = ServingPath.immediate
        package var newcomers = NewcomerRule.refusedAtLimits

        package init(limits: Limits, deadlines: Deadlines, tls: TLSContext?, rules: HeadRules = HeadRules()) {
            self.limits = limits
            self.deadlines = deadlines
            self.tls = tls
            self.rules = rules
        }
    }

    /// What the listener does with a new connection that exceeds a connection limit.
    package enum NewcomerRule: Sendable {
        /// Closes it if its address has all its connections, or if too many are open beyond the limit.
        case refusedAtLimits
        /// Closes an older connection in its place: one without a proof, first of the same address,
        /// otherwise an idle one. For administrators, whose connections mostly come from one address.
        case takingPlaces
    }

    let loop: EventLoop
    let handler: any Handler
    private(set) var settings: Settings
    /// Whether each connection closes after its current or next response.
    private(set) var isDraining = false
    /// Whether connections without a request are closed.
    private(set) var endsIdle = false
    package let descriptor: Int32
    private var event: OpaquePointer?
    private var connections: [Connection] = []
    let registry: ConnectionRegistry
    private var isPaused = false
    /// Connections opened so far.
    private var opened: UInt64 = 0

    var limits: Limits { settings.limits }
    var deadlines: Deadlines { settings.deadlines }
    var tls: TLSContext? { settings.tls }

    /// Takes over a descriptor from ``SocketAddress/listen(sockets:)``.
    package init(
        descriptor: Int32, loop: EventLoop, settings: Settings, registry: ConnectionRegistry,
        handler: any Handler
    ) {
        self.descriptor = descriptor
        self.loop = loop
        self.settings = settings
        self.handler = handler
        self.registry = registry
    }

    /// Starts to accept connections; called on the loop, or before it starts.
    package func start() {
        watch()
        loop.counters = registry.counters
        registry.register(self)
        loop.onTick { [self] in tick() }
    }

    private func watch() {
        event = event_new(
            loop.base, descriptor, Int16(EV_READ | EV_PERSIST),
            { _, _, context in
                Unmanaged<Listener>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue().accept()
            }, Unmanaged.passUnretained(self).toOpaque())
        if let event { event_add(event, nil) }
    }

    /// Leaves new connections to another process that has the same socket. Each open connection serves one
    /// more request, whose response announces the close: a request may already be in transit on any of
    /// them. Called on the loop.
    package func stopAccepting() {
        guard !isDraining else { return }
        isDraining = true
        unwatch()
    }

    /// Undoes ``stopAccepting()``. Called on the loop.
    package func resumeAccepting() {
        guard isDraining, !endsIdle else { return }
        isDraining = false
        watch()
    }

    private func unwatch() {
        if let event { event_free(event) }
        event = nil
    }

    /// Accepts no new connection, lets requests in flight finish, and closes idle connections. Called on
    /// the loop.
    package func drain() {
        guard !endsIdle else { return }
        isDraining = true
        registry.unregister(self)
        endsIdle = true
        unwatch()
        close(descriptor)
        for connection in connections where connection.phase == .idle { connection.stream.interruptReader() }
    }

    /// Closes all open connections. Called on the loop.
    package func abort() {
        for connection in connections { connection.stream.close() }
    }

    /// Replaces the settings. Limits on heads and on callers, rules, TLS and trusted proxies apply to new
    /// connections; deadlines and the other limits to open ones as well. TLS is not switched on or off.
    /// Called on the loop.
    package func replace(settings: Settings) { self.settings = settings }

    // MARK: Accepting

    /// Nanoseconds of a turn for accepting connections.
    private static let acceptLength: Int64 = 2_000_000

    /// Accepts waiting connections for a bounded time, so that open connections also get a part of the
    /// turn. All connections that one address may open fit into few turns; this bounds the wait of a client
    /// behind a flood in the kernel's queue, which is first in, first out.
    private func accept() {
        defer { loop.endUncharged() }
        let end = EventLoop.nanoseconds() &+ Listener.acceptLength
        for index in 1... {
            if index % 16 == 0, EventLoop.nanoseconds() > end { return }
            var address = SocketAddress()
            let client = address.withMutablePointer { accept4(descriptor, $0, $1, socketFlags) }
            guard client >= 0 else {
                if errno == EMFILE || errno == ENFILE { pause() }
                return
            }
            admit(client, from: address)
        }
    }

    private func admit(_ client: Int32, from address: SocketAddress) {
        // Closing is cheaper than any response: under TLS, a response needs a handshake first.
        guard let usage = usage(of: address.network) else {
            close(client)
            return
        }
        switch registry.add(limit: limits.connections) {
        case .within: open(client, from: address, usage: usage)
        case .over:
            makeRoomForNewcomer()
            open(client, from: address, usage: usage).isOverLimit = registry.current > limits.connections
        case .farOver:
            guard settings.newcomers == .takingPlaces, takePlace(),
                registry.add(limit: limits.connections) != .farOver
            else {
                usage.end()
                close(client)
                return
            }
            open(client, from: address, usage: usage).isOverLimit = true
        }
    }

    /// Closes a connection that has proved nothing, however new, or otherwise an idle one that has proved
    /// something. Returns false if every connection is in use.
    private func takePlace() -> Bool {
        if evictUnproven(isCrowded: true) {
            registry.remove()
            return true
        }
        guard let idle = roster.idle(.release, since: loop.seconds) else { return false }
        evict(idle)
        registry.remove()
        return true
    }

    /// Closes the oldest of one address's connections that have proved nothing. A client that sends its
    /// request at once is therefore served even during a flood.
    private func takePlace(of client: NetworkAddress) -> Bool {
        guard let oldest = roster.unproven.first(of: client),
            isSettled(oldest) || registry.current >= limits.connections
        else { return false }
        evict(oldest)
        registry.remove()
        return true
    }

    /// Whether a connection has had time to prove something.
    private func isSettled(_ connection: Connection) -> Bool {
        connection.unprovenPlace.since + Listener.grace < loop.seconds
    }

    /// Closes connections that have proved nothing in time, of addresses with more than their limit.
    private func endUnprovenBeyondLimit() {
        while roster.unproven.most > limits.effectiveAddressConnections, let oldest = roster.unproven.first,
            isSettled(oldest)
        {
            evict(oldest)
            registry.remove()
        }
    }

    @discardableResult
    private func open(_ client: Int32, from address: SocketAddress, usage: ConnectionBudget) -> Connection {
        var one: Int32 = 1
        setsockopt(client, cs_ipproto_tcp, TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        let stream = Stream(descriptor: client, loop: loop)
        stream.share = loop.acquireShare(of: usage.source.address)
        stream.pace = ResponseRateMonitor(rate: limits.answerRate, window: limits.answerRateWindow)
        opened &+= 1
        let connection = Connection(
            stream: stream, listener: self, peer: address.description, usage: usage, retiresAt: retirement)
        connection.expectsProxyHeader = settings.proxyProtocol == .require && usage.isExempt
        connection.index = connections.count
        connection.number = opened
        connections.append(connection)
        list(connection, as: .unproven)
        // Detached: an inheriting task would run on the main actor, and never start.
        Task.detached(executorPreference: loop) { await connection.serve() }
        return connection
    }

    /// Counts one more connection to `client`; nil when the address is at its limit. Trusted proxies have
    /// no limit.
    func usage(of client: NetworkAddress) -> ConnectionBudget? {
        let record = registry.addresses.acquire(client, now: loop.seconds)
        let isExempt = settings.isTrustedProxy(client)
        guard isExempt || reserve(for: client, countedBy: record.usage) else {
            registry.counters.add(.refusedByAddress)
            registry.addresses.release(record)
            return nil
        }
        return ConnectionBudget(registry: registry, limits: limits, peer: record, isExempt: isExempt)
    }

    private func reserve(for client: NetworkAddress, countedBy usage: CallerUsage) -> Bool {
        if usage.reserve(1, of: .connections, limit: limits.effectiveAddressConnections) { return true }
        guard settings.newcomers == .takingPlaces else { return false }
        // The closed connection counts until it has ended, within this turn of the loop. Connections that
        // were opened just now may be about to prove something. While there is room, ``tick()`` checks them
        // later.
        guard takePlace(of: client) || registry.current < limits.connections else { return false }
        usage.count(1, of: .connections)
        return true
    }

    /// When a connection that is opened now may begin its last request. A multiplicative hash of the
    /// connection's number spreads these times.
    private var retirement: Int64 {
        let spread = UInt64(max(1, deadlines.connectionAge / 8))
        let early = (opened &* 0x9E37_79B9_7F4A_7C15 >> 32) % spread
        return loop.seconds + Int64(deadlines.connectionAge) - Int64(early)
    }

    func didEnd(_ connection: Connection) {
        if connection.isListed {
            unlist(connection)
            registry.remove()
        }
        if let share = connection.stream.share { loop.releaseShare(share) }
        let last = connections.removeLast()
        if last !== connection {
            connections[connection.index] = last
            last.index = connection.index
        }
        // The connection's descriptor is closed, so that the next client can use it.
        resume()
    }

    /// Stops watching the socket when the process is out of descriptors: a listener that stays readable
    /// would spin. The end of a connection or the next tick resumes it.
    private func pause() {
        isPaused = true
        if let event { event_del(event) }
    }

    private func resume() {
        guard isPaused, let event else { return }
        isPaused = false
        event_add(event, nil)
    }

    // MARK: Giving way

    private var roster = LoopConnectionIndex()
    private let most = Atomic<Int>(0)
    /// The number of unproven connections of the address with the most of them on this loop; readable on
    /// any thread.
    var mostUnproven: Int { most.load(ordering: .relaxed) }
    /// Seconds that a new connection is spared from eviction, unless the registry is crowded with unproven
    /// connections.
    private static let grace: Int64 = 2
    /// Unproven connections that one search examines.
    private static let tries = 8

    private func list(_ connection: Connection, as standing: ConnectionProofLevel) {
        roster.insert(connection, as: standing, now: loop.seconds)
        connection.isListed = true
        if connection.listedStanding == .unproven { didChangeUnproven(by: 1) }
    }

    private func unlist(_ connection: Connection) {
        connection.isListed = false
        roster.remove(connection)
        if connection.listedStanding == .unproven { didChangeUnproven(by: -1) }
    }

    private func didChangeUnproven(by change: Int) {
        registry.countUnproven(change)
        most.store(roster.unproven.most, ordering: .relaxed)
    }

    /// Moves a connection whose proof level or address has changed. Called on the loop.
    func relist(_ connection: Connection, as standing: ConnectionProofLevel) {
        guard connection.isListed else { return }
        unlist(connection)
        list(connection, as: standing)
    }

    /// Evicts an unproven connection for a new one. If an address has more unproven connections on another
    /// loop, that loop evicts; its connection counts as closed from now on.
    private func makeRoomForNewcomer() {
        let limit = limits.connections
        let isCrowded = registry.isCrowded(limit: limit)
        let crowded = registry.mostCrowded(from: self)
        guard crowded !== self, !registry.isFull(limit: limit) || mostUnproven == 0 else {
            if evictUnproven(isCrowded: isCrowded) { registry.remove() }
            return
        }
        registry.remove()
        crowded.loop.perform { [registry] in
            if !crowded.evictUnproven(isCrowded: isCrowded) { registry.restore() }
        }
    }

    /// Evicts another connection for one that has proved `standing`; false when there is no room.
    func makeRoom(for standing: ConnectionProofLevel) -> Bool {
        guard registry.current > limits.connections, !evictForProven(standing) else { return true }
        return registry.makeRoomElsewhere(than: self, for: standing, now: loop.seconds)
            && !registry.isFull(limit: limits.connections)
    }

    /// Evicts one connection for one that has proved `standing`: an unproven one; else an idle one that
    /// proved no more; else one that proved more and has been idle for ``Deadlines/idleUnproven`` seconds.
    func evictForProven(_ standing: ConnectionProofLevel) -> Bool {
        if evictUnproven(isCrowded: false) {
            registry.remove()
            return true
        }
        for other in ConnectionProofLevel.allCases.dropFirst() {
            let latest = other <= standing ? loop.seconds : loop.seconds - Int64(deadlines.idleUnproven)
            guard let connection = roster.idle(other, since: latest) else { continue }
            evict(connection)
            registry.remove()
            return true
        }
        return false
    }

    /// Evicts an unproven connection; the caller removes it from the registry's count. New connections are
    /// spared for a grace period unless `isCrowded`. A connection whose request is in progress is spared if
    /// another is found within a few tries.
    private func evictUnproven(isCrowded: Bool) -> Bool {
        for left in (0..<Listener.tries).reversed() {
            guard let connection = roster.unproven.first else { return false }
            let isNew = connection.unprovenPlace.since + Listener.grace >= loop.seconds
            guard isCrowded || !isNew else { return false }
            if connection.awaitsClient || left == 0 {
                evict(connection)
                return true
            }
            relist(connection, as: .unproven)
        }
        return false
    }

    private func evict(_ connection: Connection) {
        unlist(connection)
        registry.counters.add(.evictedIdle)
        connection.stream.close()
    }

    /// Called once a second: resumes accepting, and closes unproven idle connections while many are open.
    private func tick() {
        resume()
        if settings.newcomers == .takingPlaces { endUnprovenBeyondLimit() }
        guard registry.current > limits.connections / 2 else { return }
        let latest = loop.seconds - Int64(deadlines.idleUnproven)
        for connection in connections
        where connection.phase == .idle && connection.usage.proofLevel == .unproven
            && connection.idleSince <= latest
        {
            if connection.stream.interruptReader() { registry.counters.add(.evictedIdle) }
        }
    }
}
