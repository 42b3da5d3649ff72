import CEvent
import CountersignWire
import Glibc

/// A loop's own listening socket and the connections it accepted. Every loop has one on the same port; the kernel deals
/// the connections out. Confined to its loop, but for `make`.
package final class Listener: @unchecked Sendable {
    /// What all listeners of one port have in common.
    package struct Settings: Sendable {
        package var limits: Limits
        package var deadlines: Deadlines
        package var tls: TLSContext?
        package var rules: HeadRules

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
    private(set) var isDraining = false
    private let descriptor: Int32
    private var event: OpaquePointer?
    private var connections: [Connection] = []
    let registry: ConnectionRegistry
    private var isPaused = false

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
        event = event_new(
            loop.base, descriptor, Int16(EV_READ | EV_PERSIST),
            { _, _, context in
                Unmanaged<Listener>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue().accept()
            }, Unmanaged.passUnretained(self).toOpaque())
        if let event { event_add(event, nil) }
        loop.onTick { [self] in tick() }
    }

    /// Takes no new connection, lets requests in flight finish, and ends the idle. On the loop.
    package func drain() {
        guard !isDraining else { return }
        isDraining = true
        if let event { event_free(event) }
        event = nil
        close(descriptor)
        for connection in connections where connection.phase == .idle { connection.stream.interruptReader() }
    }

    /// Ends what is still open. On the loop.
    package func abort() {
        for connection in connections { connection.stream.close() }
    }

    /// For connections from now on. On the loop.
    package func replace(tls: TLSContext?) { settings.tls = tls }

    /// Takes all that wait, up to a number that leaves the loop time for those it has.
    private func accept() {
        for _ in 0..<64 {
            var address = SocketAddress()
            let client = address.withMutablePointer { accept4(descriptor, $0, $1, socketFlags) }
            guard client >= 0 else {
                if errno == EMFILE || errno == ENFILE { pause() }
                return
            }
            switch registry.add(limit: limits.connections) {
            case .within: open(client, from: address, mayAsk: true)
            case .over: open(client, from: address, mayAsk: false)
            case .farOver: close(client)
            }
        }
    }

    private func open(_ client: Int32, from address: SocketAddress, mayAsk: Bool) {
        var one: Int32 = 1
        setsockopt(client, cs_ipproto_tcp, TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        let connection = Connection(
            stream: Stream(descriptor: client, loop: loop), listener: self, peer: address.description,
            record: registry.addresses.acquire(address.network, now: loop.seconds))
        connection.isOverLimit = !mayAsk
        connection.index = connections.count
        connections.append(connection)
        // Detached: an inheriting task would run on the main actor, and never start.
        Task.detached(executorPreference: loop) { await connection.serve() }
    }

    private var heldBytes = 0

    /// Books bytes of a body that is held before it was judged; false where all connections together hold too much.
    func hold(_ count: Int) -> Bool {
        guard heldBytes + count <= limits.heldBytes else { return false }
        heldBytes += count
        return true
    }

    func letGo(_ count: Int) { heldBytes -= count }

    func didEnd(_ connection: Connection) {
        registry.remove()
        let last = connections.removeLast()
        guard last !== connection else { return }
        connections[connection.index] = last
        last.index = connection.index
    }

    /// Out of descriptors: a listener that stays readable would spin. The next tick tries again.
    private func pause() {
        isPaused = true
        if let event { event_del(event) }
    }

    private func tick() {
        guard isPaused, let event else { return }
        isPaused = false
        event_add(event, nil)
    }
}
