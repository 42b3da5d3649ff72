import CEvent
import CountersignWire
import Glibc
import Synchronization

/// A loop's own listening socket and the connections it accepted. Every loop has one on the same port; the kernel deals
/// the connections out. Confined to its loop, but for `make`.
package final class Listener: @unchecked Sendable {
    /// What all listeners of one port have in common.
    package struct Settings: Sendable {
        package var limits: Limits
        package var deadlines: Deadlines
        package var tls: TLSContext?
        package var rules: HeadRules
        /// Whose connections carry many clients, and count to no address.
        package var isTrustedProxy: @Sendable (NetworkAddress) -> Bool = { _ in false }
        /// Whether those begin their connections with a PROXY header.
        package var proxyProtocol = ProxyProtocol.off

        package init(limits: Limits, deadlines: Deadlines, tls: TLSContext?, rules: HeadRules = HeadRules()) {
            self.limits = limits
            self.deadlines = deadlines
            self.tls = tls
            self.rules = rules
        }
    }

    let loop: EventLoop
    let handler: any Handler
    private(set) var settings: Settings
    /// No more than the request that is being answered, on each connection.
    private(set) var isDraining = false
    /// Connections without a request are ended.
    private(set) var endsIdle = false
    package let descriptor: Int32
    private var event: OpaquePointer?
    private var connections: [Connection] = []
    let registry: ConnectionRegistry
    private var isPaused = false
    /// Connections that were ever opened.
    private var opened: UInt64 = 0

    var limits: Limits { settings.limits }
    var deadlines: Deadlines { settings.deadlines }
    var tls: TLSContext? { settings.tls }

    /// Takes over a descriptor from ``SocketAddress/listen(on:)``.
    package init(
        descriptor: Int32, loop: EventLoop, settings: Settings, registry: ConnectionRegistry, handler: any Handler
    ) {
        self.descriptor = descriptor
        self.loop = loop
        self.settings = settings
        self.handler = handler
        self.registry = registry
    }

    /// Accepts from now on; on the loop, or before it starts.
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

    /// Leaves new connections to another process that has the same socket. Each connection that there is gets
    /// one more answer, which says that it is the last: a request may be on its way on any of them. On the
    /// loop.
    package func stopAccepting() {
        guard !isDraining else { return }
        isDraining = true
        unwatch()
    }

    /// Undoes ``stopAccepting()``. On the loop.
    package func resumeAccepting() {
        guard isDraining, !endsIdle else { return }
        isDraining = false
        watch()
    }

    private func unwatch() {
        if let event { event_free(event) }
        event = nil
    }

    /// Takes no new connection, lets requests in flight finish, and ends the idle. On the loop.
    package func drain() {
        guard !endsIdle else { return }
        isDraining = true
        registry.unregister(self)
        endsIdle = true
        unwatch()
        close(descriptor)
        for connection in connections where connection.phase == .idle { connection.stream.interruptReader() }
    }

    /// Ends what is still open. On the loop.
    package func abort() {
        for connection in connections { connection.stream.close() }
    }

    /// For connections from now on. On the loop.
    package func replace(tls: TLSContext?) { settings.tls = tls }

    // MARK: Accepting

    /// Nanoseconds a turn for connections that wait to be accepted.
    private static let acceptLength: Int64 = 2_000_000

    /// Takes those that wait, for a time that leaves the loop some for those it has. All that an address may
    /// open fit into few turns: a client that connects behind a flood waits in the kernel's queue, where no
    /// address comes before another.
    private func accept() {
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
        // Cheaper than any answer: under TLS there would be a handshake first.
        guard let usage = usage(of: address.network) else {
            close(client)
            return
        }
        switch registry.add(limit: limits.connections) {
        case .within: open(client, from: address, usage)
        case .over:
            makeRoomForNewcomer()
            open(client, from: address, usage).isOverLimit = registry.current > limits.connections
        case .farOver:
            usage.end()
            close(client)
        }
    }

    @discardableResult
    private func open(_ client: Int32, from address: SocketAddress, _ usage: ConnectionUsage) -> Connection {
        var one: Int32 = 1
        setsockopt(client, cs_ipproto_tcp, TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        let stream = Stream(descriptor: client, loop: loop)
        stream.share = loop.acquireShare(of: usage.source.address)
        stream.pace = AnswerPace(rate: limits.answerRate, window: limits.answerRateWindow)
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

    /// Counts one more connection to `client`; nil where it has as many as it may. Trusted proxies may have any number.
    func usage(of client: NetworkAddress) -> ConnectionUsage? {
        let record = registry.addresses.acquire(client, now: loop.seconds)
        let isExempt = settings.isTrustedProxy(client)
        guard isExempt || record.usage.reserve(1, of: .connections, limit: limits.effectiveAddressConnections) else {
            registry.counters.add(.refusedByAddress)
            registry.addresses.release(record)
            return nil
        }
        return ConnectionUsage(registry: registry, limits: limits, peer: record, isExempt: isExempt)
    }

    /// When a connection that is opened now takes its last request. Spread by a multiplicative hash of its number.
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
        // Its descriptor is closed: the next client can have it.
        resume()
    }

    /// Out of descriptors: a listener that stays readable would spin. The end of a connection, or the next
    /// tick, tries again.
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

    private var roster = ConnectionRoster()
    private let most = Atomic<Int>(0)
    /// The unproven connections of the address that has most of them on this loop; readable on any thread.
    var mostUnproven: Int { most.load(ordering: .relaxed) }
    /// Seconds that a newcomer has to prove something, while few have proved nothing.
    private static let grace: Int64 = 2
    /// Unproven connections that one search looks at.
    private static let tries = 8

    private func list(_ connection: Connection, as standing: ConnectionStanding) {
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

    /// What the connection has proved has changed, or whom it counts to. On the loop.
    func relist(_ connection: Connection, as standing: ConnectionStanding) {
        guard connection.isListed else { return }
        unlist(connection)
        list(connection, as: standing)
    }

    /// Ends a connection that has proved nothing for one that is about to be opened. Another loop is asked
    /// where its strangers are more; its connection counts as ended from now on.
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

    /// Has another connection give way to one that has proved `standing`; false where there is no room.
    func makeRoom(for standing: ConnectionStanding) -> Bool {
        guard registry.current > limits.connections, !evictForProven(standing) else { return true }
        return registry.makeRoomElsewhere(than: self, for: standing, now: loop.seconds)
            && !registry.isFull(limit: limits.connections)
    }

    /// Ends one connection for one that has proved `standing`: of strangers, else an idle one that proved no
    /// more, else one that proved more and was idle for long.
    func evictForProven(_ standing: ConnectionStanding) -> Bool {
        if evictUnproven(isCrowded: false) {
            registry.remove()
            return true
        }
        for other in ConnectionStanding.allCases.dropFirst() {
            let latest = other <= standing ? loop.seconds : loop.seconds - Int64(deadlines.idleUnproven)
            guard let connection = roster.idle(other, since: latest) else { continue }
            evict(connection)
            registry.remove()
            return true
        }
        return false
    }

    /// Ends a connection that has proved nothing; the caller counts it out. Newcomers are left a while to
    /// prove something unless `isCrowded`. One whose request is being worked on is spared if few tries find
    /// another.
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

    /// Once a second.
    private func tick() {
        resume()
        guard registry.current > limits.connections / 2 else { return }
        let latest = loop.seconds - Int64(deadlines.idleUnproven)
        for connection in connections
        where connection.phase == .idle && connection.usage.standing == .unproven && connection.idleSince <= latest {
            if connection.stream.interruptReader() { registry.counters.add(.evictedIdle) }
        }
    }
}
