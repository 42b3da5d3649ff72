import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignThreads
import CountersignWire
import Glibc
import Synchronization

/// Coordinates a server with its predecessor and its successor. Confined to the main thread, except for what
/// it passes to the threads that it starts.
final class HandoverCoordinator {
    /// Seconds that a server stays after the hand-over at least, so that it can take back.
    private static let leastSeconds: Int64 = 5
    /// The prefix of the message with the server's node id.
    static let nodeOffer = "node "

    private let handOver: HandoverState
    private let service: Service
    private let replay: ReplayFile
    private let limits: LoginLimits
    private let sessions: SessionDirectory
    private let requests: KeyedRequestStorage
    private let readiness: Readiness
    private let log: EventLog?
    private let reloader: Reloader
    private let node: String?
    private var control: ControlServer?
    private var predecessor: ControlConnection?
    private let watch = PredecessorWatch()
    private var handedOverAt: Int64?
    private var isEnding = false
    private var wasToldToEnd = false
    /// When the drain delay ends and the server stops accepting connections, in seconds of the monotonic
    /// clock.
    private var endsAt: Int64?

    init(
        handOver: HandoverState, service: Service, replay: ReplayFile, limits: LoginLimits,
        sessions: SessionDirectory, requests: KeyedRequestStorage, readiness: Readiness, log: EventLog?,
        reloader: Reloader, node: String?
    ) {
        (self.reloader, self.node) = (reloader, node)
        self.sessions = sessions
        self.requests = requests
        self.handOver = handOver
        self.service = service
        self.replay = replay
        self.limits = limits
        self.readiness = readiness
        self.log = log
    }

    /// Call once this server accepts connections: the predecessor then leaves new connections to it, and this
    /// server takes the control socket.
    func begin(in folder: DataFolder, after inheritance: InheritedResources?) throws(OperationalError) {
        inheritance?.confirm()
        do {
            let control = try ControlServer(in: folder, handOver: handOver, operations: operations())
            try control.start()
            self.control = control
        } catch {
            // For example because the disk is full. The server serves all the same.
            log?.note(
                subject: "restart",
                message: "no control socket, so no restart without an outage: \(error.message)")
        }
        guard let inheritance else { return }
        predecessor = inheritance.connection
        try watch.start(inheritance.connection, handOver: handOver)
    }

    /// Whether the main thread has nothing more to wait for.
    func shouldEnd(deadline: Int) -> Bool {
        if let endsAt, !handOver.hasHandedOver, EventLoop.monotonicSeconds() >= endsAt { isEnding = true }
        if isEnding { return true }
        guard handOver.hasHandedOver else {
            if handedOverAt != nil { readiness.serveAgain() }
            handedOverAt = nil
            return false
        }
        readiness.beginDraining()
        let now = EventLoop.monotonicSeconds()
        let began = handedOverAt ?? now
        handedOverAt = began
        if now - began >= Int64(deadline) { return true }
        return service.openConnections == 0 && sessions.unsavedCount == 0
            && now - began >= HandoverCoordinator.leastSeconds
    }

    /// Ends the process, which was told to stop. Tells a predecessor that still responds not to serve again
    /// in its place. For `delay` seconds the process is not ready but still accepts connections. A server
    /// that has handed over is already ending. After a second call, neither waits.
    func endGracefully(after delay: Int) {
        if delay > 0, !wasToldToEnd, !handOver.hasHandedOver {
            endsAt = EventLoop.monotonicSeconds() + Int64(delay)
            readiness.beginDraining()
            log?.note(subject: "restart", message: "told to stop: no new connections after \(delay) s")
        } else {
            isEnding = !handOver.hasHandedOver || wasToldToEnd
        }
        wasToldToEnd = true
        try? predecessor?.send("bye")
    }

    /// Whether the main thread must check often for what it waits for.
    var isWaitingShortly: Bool { handOver.hasHandedOver || endsAt != nil }

    /// Call after the loops have ended.
    func end() {
        control?.stop()
        watch.stop()
    }

    /// Waits until the store contains every first use of a renewed key, because the successor reads the
    /// store.
    private static func waitForSessionWrites(_ sessions: SessionDirectory) throws(OperationalError) {
        for _ in 0..<50 where sessions.unsavedCount > 0 {
            try sessions.reconcile()
            usleep(100_000)
        }
        guard sessions.unsavedCount == 0 else {
            throw OperationalError(
                .failed, message: "the store does not take what sessions have used: no restart now")
        }
    }

    private func operations() -> ControlServer.Operations {
        let (service, replay, limits, sessions, log) = (service, replay, limits, sessions, log)
        let (requests, reloader) = (requests, reloader)
        return ControlServer.Operations(
            node: node.map { HandoverCoordinator.nodeOffer + $0 },
            offers: { () throws(OperationalError) in
                try HandoverCoordinator.waitForSessionWrites(sessions)
                guard let sharing = replay.handover, let limits = limits.sharing else {
                    throw OperationalError(
                        .failed, message: "this kernel makes no memory that can be handed over")
                }
                // Before all else: a successor that does not know it takes nothing over.
                return requests.offers(describedBy: sharing.lockFile) + [
                    ("replay-file-lock", sharing.lockFile), ("replay-table-locks", sharing.locks),
                    ("login-limits", limits),
                ] + service.sockets.listeners.map { ("listener", $0) }
                    + service.sockets.adminListeners.map { ("admin-listener", $0) }
            },
            stopAccepting: { service.stopAccepting() }, resumeAccepting: { service.resumeAccepting() },
            closeListeners: { service.closeListeners() }, reload: { reloader.reload() },
            wake: { Signals.wake() },
            note: { log?.note(subject: "restart", message: $0) })
    }
}

/// The thread that waits for the predecessor's end. Safe to share: only the thread that starts and stops it
/// touches `thread`.
private final class PredecessorWatch: @unchecked Sendable {
    private let isStopping = Atomic(false)
    private var thread: WorkerThreads?

    func start(_ predecessor: ControlConnection, handOver: HandoverState) throws(OperationalError) {
        thread = try WorkerThreads(purpose: "to wait for the predecessor on") { [self] in
            while !isStopping.load(ordering: .acquiring) {
                handOver.tick()
                if case .end = (try? predecessor.receive(within: 100)) ?? .end { break }
            }
            // The predecessor's requests are over: their results are in the store, or are lost.
            handOver.end()
        }
    }

    func stop() {
        isStopping.store(true, ordering: .releasing)
        thread?.join()
        thread = nil
    }
}

/// When the main thread does its periodic work.
struct MainThreadSchedule {
    private static let short = 50
    private let milliseconds: Int
    private var last = MainThreadSchedule.now()

    init(milliseconds: Int) { self.milliseconds = milliseconds }

    func patience(isShort: Bool) -> Int { isShort ? MainThreadSchedule.short : milliseconds }

    /// True at once after a long wait; between short waits, true once per interval.
    mutating func isDue(isShort: Bool) -> Bool {
        let now = MainThreadSchedule.now()
        guard !isShort || now - last >= milliseconds else { return false }
        last = now
        return true
    }

    private static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
    }
}
