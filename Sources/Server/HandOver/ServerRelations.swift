import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire
import Glibc
import Synchronization

/// What a server has to do with the one before it and the one after it. Confined to the main thread, but for
/// what it gives to the threads that it starts.
final class ServerRelations {
    /// Seconds for which a server that has handed over stays at least, so that it can take back.
    private static let leastSeconds: Int64 = 5

    private let handOver: HandOver
    private let service: Service
    private let replay: ReplayFile
    private let limits: LoginLimits
    private let sessions: LiveSessions
    private let readiness: Readiness
    private let log: EventLog?
    private var control: ControlServer?
    private var predecessor: ControlConnection?
    private let watch = PredecessorWatch()
    private var handedOverAt: Int64?
    private var isEnding = false
    private var wasToldToEnd = false

    init(
        _ handOver: HandOver, _ service: Service, _ replay: ReplayFile, _ limits: LoginLimits,
        _ sessions: LiveSessions, _ readiness: Readiness, _ log: EventLog?
    ) {
        self.sessions = sessions
        self.handOver = handOver
        self.service = service
        self.replay = replay
        self.limits = limits
        self.readiness = readiness
        self.log = log
    }

    /// Once this server accepts connections: the predecessor leaves them to it, and the control socket is this one's.
    func begin(in folder: DataFolder, after inheritance: Inheritance?) throws(Fault) {
        inheritance?.confirm()
        do throws(Fault) {
            let control = try ControlServer(in: folder, handOver: handOver, operations: operations())
            try control.start()
            self.control = control
        } catch {
            // A full disk, say. It serves all the same.
            log?.note("restart", "no control socket, so no restart without an outage: \(error.message)")
        }
        guard let inheritance else { return }
        predecessor = inheritance.connection
        try watch.start(inheritance.connection, handOver: handOver)
    }

    /// Whether the main thread has no more to wait for.
    func isOver(deadline: Int) -> Bool {
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
            && now - began >= ServerRelations.leastSeconds
    }

    /// The process was told to end: a predecessor that still answers must not serve again in its place. One
    /// that has handed over does nothing but end anyway; told twice, it does not wait for requests in flight.
    func endInOrder() {
        isEnding = !handOver.hasHandedOver || wasToldToEnd
        wasToldToEnd = true
        try? predecessor?.send("bye")
    }

    /// After the loops have ended.
    func end() {
        control?.stop()
        watch.stop()
    }

    /// Waits until the store knows of every first use of a renewed key: the successor reads it.
    private static func settle(_ sessions: LiveSessions) throws(Fault) {
        for _ in 0..<50 where sessions.unsavedCount > 0 {
            try sessions.reconcile()
            usleep(100_000)
        }
        guard sessions.unsavedCount == 0 else {
            throw Fault(.failed, "the store does not take what sessions have used: no restart now")
        }
    }

    private func operations() -> ControlServer.Operations {
        let (service, replay, limits, sessions, log) = (service, replay, limits, sessions, log)
        return ControlServer.Operations(
            offers: { () throws(Fault) in
                try ServerRelations.settle(sessions)
                guard let sharing = replay.sharing, let limits = limits.sharing else {
                    throw Fault(.failed, "this kernel makes no memory that can be handed over")
                }
                return [
                    ("replay-file-lock", sharing.lockFile), ("replay-table-locks", sharing.locks),
                    ("login-limits", limits),
                ] + service.sockets.listeners.map { ("listener", $0) }
                    + service.sockets.adminListeners.map { ("admin-listener", $0) }
            },
            stopAccepting: { service.stopAccepting() }, resumeAccepting: { service.resumeAccepting() },
            closeListeners: { service.closeListeners() }, wake: { Signals.wake() },
            note: { log?.note("restart", $0) })
    }
}

/// The thread that waits for the predecessor's end. Safe to share: `thread` is touched by who starts and stops it.
private final class PredecessorWatch: @unchecked Sendable {
    private let isStopping = Atomic(false)
    private var thread: pthread_t?

    func start(_ predecessor: ControlConnection, handOver: HandOver) throws(Fault) {
        thread = try ControlThread.start { [self] in
            while !isStopping.load(ordering: .acquiring) {
                handOver.tick()
                if case .end = (try? predecessor.receive(within: 100)) ?? .end { break }
            }
            // Its requests are over: their results are in the store, or are lost.
            handOver.end()
        }
    }

    func stop() {
        isStopping.store(true, ordering: .releasing)
        if let thread { pthread_join(thread, nil) }
        thread = nil
    }
}

/// When the main thread does what it does every few seconds.
struct Turn {
    private static let short = 50
    private let milliseconds: Int
    private var last = Turn.now()

    init(milliseconds: Int) { self.milliseconds = milliseconds }

    func patience(isShort: Bool) -> Int { isShort ? Turn.short : milliseconds }

    /// True at once after a longer wait, and every so often between short ones.
    mutating func isDue(isShort: Bool) -> Bool {
        let now = Turn.now()
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
