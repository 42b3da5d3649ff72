import CLinux
import CountersignAuthority
import CountersignGate
import CountersignThreads
import CountersignWire
import Glibc
import Synchronization

/// Answers at the control socket, on a thread of its own: hands over to a successor, starts one, and reports
/// which process serves. One conversation at a time.
///
/// Safe to share: `isStopping` is an atomic; only the thread touches the rest once it runs.
final class ControlServer: @unchecked Sendable {
    /// What a conversation can do to the server; each may be called on any thread.
    struct Operations: Sendable {
        /// The message that tells a successor which node it replaces; nil where there are no nodes.
        var node: String?
        /// All resources that a successor needs, by the names that ``InheritedResources`` knows.
        var offers: @Sendable () throws(OperationalError) -> [(name: String, descriptor: FileDescriptor)]
        /// Leaves new connections to the successor, and answers on open ones with `Connection: close`.
        var stopAccepting: @Sendable () -> Void
        var resumeAccepting: @Sendable () -> Void
        /// Gives up the listening sockets: the successor has ended in order.
        var closeListeners: @Sendable () -> Void
        /// Applies the settings anew.
        var reload: @Sendable () -> ReloadReport
        /// Wakes the main thread to look at changes.
        var wake: @Sendable () -> Void
        var note: @Sendable (String) -> Void
    }

    /// Milliseconds that a successor has to load everything.
    private static let patience = 600_000
    private static let tick = 100
    /// Milliseconds that a connection has for its message.
    private static let messagePatience = 5_000

    private let folder: DataFolder
    private let handOver: HandoverState
    private let operations: Operations
    private let isStopping = Atomic(false)
    private var socket: FileDescriptor
    private var successor: pid_t?
    private var thread: WorkerThreads?

    /// Listens in place of a process that did so before.
    init(in folder: DataFolder, handOver: HandoverState, operations: Operations) throws(OperationalError) {
        (self.folder, self.handOver, self.operations) = (folder, handOver, operations)
        socket = try ControlSocket.listen(in: folder)
    }

    func start() throws(OperationalError) {
        thread = try WorkerThreads(purpose: "for the control socket") { self.run() }
    }

    /// Returns once the thread has ended.
    func stop() {
        isStopping.store(true, ordering: .releasing)
        thread?.join()
        thread = nil
    }

    private var mayGoOn: Bool { !isStopping.load(ordering: .acquiring) }

    private func run() {
        while mayGoOn {
            reap()
            handOver.tick()
            var item = pollfd(fd: socket.number, events: Int16(POLLIN), revents: 0)
            guard poll(&item, 1, Int32(ControlServer.tick)) > 0 else { continue }
            serveNext(within: ControlServer.messagePatience)
        }
    }

    private func serveNext(within milliseconds: Int) {
        let number = cs_accept_closing_on_exec(socket.number)
        guard number >= 0 else { return }
        do {
            try serve(ControlConnection(FileDescriptor(owning: number)), within: milliseconds)
        } catch {
            operations.note(error.message)
        }
    }

    /// Answers one conversation that waits while this server hands over: a second restart and a reload are
    /// refused, which is better than no answer.
    private func serveWaiting() {
        var item = pollfd(fd: socket.number, events: Int16(POLLIN), revents: 0)
        guard poll(&item, 1, 0) > 0 else { return }
        serveNext(within: ControlServer.tick)
    }

    private func serve(
        _ connection: ControlConnection, within milliseconds: Int
    ) throws(OperationalError) {
        switch try connection.receive(within: milliseconds) {
        case .message("take-over 1", _): try handOver(to: connection)
        case .message("restart", _): try startSuccessor(for: connection)
        case .message("who", _): try connection.send("serving \(getpid())")
        case .message("reload", _): try operations.reload().send(over: connection)
        case .message("look", _):
            operations.wake()
            try connection.send("ok")
        case .message: try connection.send("failed this server does not know that message")
        case .end, .nothing: break
        }
    }

    // MARK: A successor

    private func handOver(to connection: ControlConnection) throws(OperationalError) {
        guard !handOver.isShared else { return try connection.send("busy") }
        // From here on both processes may serve, as far as this one knows, so this one announces its changes
        // to the other.
        handOver.begin()
        handOver.isHandingOver = true
        defer {
            handOver.isHandingOver = false
            handOver.end()
        }
        do {
            if let node = operations.node { try connection.send(node) }
            for offer in try operations.offers() { try connection.send(offer.name, with: offer.descriptor) }
            try connection.send("end")
        } catch {
            try? connection.send("failed \(error.message)")
            throw error
        }
        guard try accepts(connection) else {
            return operations.note("the successor ended before it accepted connections; this server goes on")
        }
        handOver.hasHandedOver = true
        operations.stopAccepting()
        operations.wake()
        try? connection.send("draining")
        watch(connection)
    }

    /// Whether the successor accepts connections.
    private func accepts(_ connection: ControlConnection) throws(OperationalError) -> Bool {
        for _ in 0..<ControlServer.patience / ControlServer.tick where mayGoOn {
            handOver.tick()
            serveWaiting()
            switch try connection.receive(within: ControlServer.tick) {
            case .message("accepting", _): return true
            case .message, .end: return false
            case .nothing: break
            }
        }
        return false
    }

    /// Waits until this server or the successor has ended.
    private func watch(_ connection: ControlConnection) {
        var endsInOrder = false
        while mayGoOn {
            handOver.tick()
            reap()
            serveWaiting()
            switch (try? connection.receive(within: ControlServer.tick)) ?? .end {
            case .nothing: break
            case .message("bye", _):
                endsInOrder = true
                operations.closeListeners()
            case .message: break
            case .end:
                guard !endsInOrder, mayGoOn else { return }
                return takeBack()
            }
        }
    }

    /// The successor died while this server still has the listening sockets: it serves again.
    private func takeBack() {
        handOver.hasHandedOver = false
        operations.resumeAccepting()
        do {
            socket = try ControlSocket.listen(in: folder)
        } catch {
            operations.note(error.message)
        }
        operations.note("the successor died; this server accepts connections again")
        operations.wake()
    }

    // MARK: Starting one

    private func startSuccessor(for connection: ControlConnection) throws(OperationalError) {
        guard !handOver.isShared, successor == nil else {
            return try connection.send("failed another restart is under way")
        }
        do {
            let child = try ServerProgram.startSuccessor()
            successor = child
            try connection.send("started \(child)")
        } catch {
            try connection.send("failed \(error.message)")
        }
    }

    private func reap() {
        guard let child = successor else { return }
        var status: Int32 = 0
        if waitpid(child, &status, WNOHANG) == child { successor = nil }
    }
}
