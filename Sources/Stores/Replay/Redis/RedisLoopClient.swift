import CountersignHTTP
import CountersignWire
import Synchronization

/// A loop's connection to Redis, over which the insertions of all its requests are pipelined. Confined to the
/// loop.
///
/// An insertion that is not answered in time ends the connection: replies come in order, so
/// that those behind it would be late too. After a failure, insertions fail at once until another connection
/// is open.
final class RedisLoopClient: ReplayLoopClient, @unchecked Sendable {
    /// An `EVALSHA` of the script, and the grant that it was made for.
    struct Insertion: Sendable {
        let command: [UInt8]
        let grant: RedisReplayGrant
    }

    private static let pauseMilliseconds = 100
    /// Errors after which the connection is opened anew.
    private static let finalErrors = [
        "NOSCRIPT", "READONLY", "LOADING", "MASTERDOWN", "NOAUTH", "NOPERM", "MOVED",
    ]

    let loop: EventLoop
    private let address: RedisAddress
    private let state: ReplayGrants<RedisReplayGrant>
    /// Called when the server may have lost entries, or is another one.
    private let suspect: @Sendable () -> Void
    private let pause: LoopAlarm
    private var timer: LoopTimer?
    private var service: ServiceConnection?
    private var identity: ReplayDataSet?
    private var reader = RESPReader()
    private var isOpening = false
    /// Whether an attempt or a connection has failed since the last success.
    private var hasFailed = false
    private let isOpen = Atomic(false)
    private var queue: InsertionQueue<Void>
    private var outgoing: [UInt8] = []
    private var isFlushScheduled = false

    init(
        on loop: EventLoop, address: RedisAddress, state: ReplayGrants<RedisReplayGrant>,
        suspect: @escaping @Sendable () -> Void
    ) {
        self.loop = loop
        self.address = address
        self.state = state
        self.suspect = suspect
        queue = InsertionQueue(patience: state.patience)
        pause = LoopAlarm(loop)
        timer = LoopTimer(loop, milliseconds: InsertionQueue<Void>.timerMilliseconds) { [unowned self] in
            endOverdue()
        }
    }

    /// Connects if there is a grant and no connection for it.
    func prepare() {
        guard let grant = state.grant, !isOpening else { return }
        if let service, identity != grant.epoch.identity { service.close() }
        guard service == nil else { return }
        isOpening = true
        Task.detached(executorPreference: loop) { [self] in await serve(grant) }
    }

    var isConnected: Bool { isOpen.load(ordering: .relaxed) }

    func insert(
        _ insertion: Insertion, resuming continuation: UnsafeContinuation<InsertionOutcome, Never>
    ) {
        let grant = insertion.grant
        if service == nil || identity != grant.epoch.identity { prepare() }
        guard service.map({ !$0.isClosed }) ?? false || !hasFailed else {
            return continuation.resume(returning: .failed("Redis at \(grant.server) is away"))
        }
        guard queue.append((), resuming: continuation) else {
            return continuation.resume(returning: .failed("too many insertions wait for Redis"))
        }
        outgoing.append(contentsOf: insertion.command)
        timer?.start()
        // All insertions of a turn are sent together.
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        loop.perform { [self] in flush() }
    }

    private func flush() {
        isFlushScheduled = false
        guard let service, !outgoing.isEmpty else { return }
        service.send(outgoing)
        outgoing.removeAll(keepingCapacity: true)
    }

    /// Connects, and reads replies until the connection ends.
    private func serve(_ grant: RedisReplayGrant) async {
        var reason: String
        do throws(OperationalError) {
            let connection = try await open(grant)
            isOpening = false
            hasFailed = false
            flush()
            reason = "the connection to Redis was closed"
            await readReplies(from: connection)
            connection.close()
        } catch {
            reason = error.message
        }
        // Until another connection is open, nothing waits.
        (service, identity) = (nil, nil)
        isOpen.store(false, ordering: .relaxed)
        (isOpening, hasFailed) = (true, true)
        endAll(because: reason)
        suspect()
        await pause.wait(milliseconds: RedisLoopClient.pauseMilliseconds)
        isOpening = false
        prepare()
    }

    private func open(_ grant: RedisReplayGrant) async throws(OperationalError) -> ServiceConnection {
        let connection = try await RedisConnection.open(
            to: grant.target, of: address, name: grant.server, on: loop)
        do throws(OperationalError) {
            let status = try await connection.status()
            guard status.identity == grant.epoch.identity, status.role == "master" else {
                throw connection.failure("it holds another data set than the epoch's")
            }
            _ = try await connection.load(script: RedisReplayScript.text)
        } catch {
            connection.close()
            throw error
        }
        service = connection.service
        identity = grant.epoch.identity
        isOpen.store(true, ordering: .relaxed)
        reader = RESPReader()
        return connection.service
    }

    private func readReplies(from service: ServiceConnection) async {
        var received: [UInt8] = []
        while true {
            do {
                received.removeAll(keepingCapacity: true)
                try await service.read(into: &received)
                reader.append(received)
                while let reply = try reader.next() { try take(reply) }
            } catch {
                return
            }
        }
    }

    private func take(_ reply: RESPReply) throws(RESPReader.ReaderError) {
        let isUsable: Bool
        switch reply {
        case .integer(let number):
            let outcome = RedisReplayScript.Outcome(rawValue: number)
            if outcome == .epochLost { suspect() }
            isUsable = outcome != nil
            try end(outcome?.result ?? .failed("Redis returned \(number)"))
        case .error(let message):
            // The script is loaded on each new connection, and the data set is compared.
            isUsable = !RedisLoopClient.finalErrors.contains(where: message.hasPrefix)
            try end(.failed("Redis: \(RedisServerStatus.quotable(message))"))
        default:
            isUsable = false
            try end(.failed("Redis sent a reply of another kind"))
        }
        guard isUsable else { throw .malformed }
    }

    /// Ends the oldest insertion; throws if none waits for a reply.
    private func end(_ outcome: InsertionOutcome) throws(RESPReader.ReaderError) {
        guard queue.endFirst(outcome) else { throw .malformed }
        if queue.count == 0 { timer?.stop() }
    }

    private func endOverdue() {
        guard queue.count > 0 else {
            timer?.stop()
            return
        }
        guard queue.isOverdue else { return }
        hasFailed = true
        isOpen.store(false, ordering: .relaxed)
        endAll(because: "Redis took longer than \(queue.patience) ms")
        service?.close()
    }

    private func endAll(because reason: String) {
        outgoing = []
        timer?.stop()
        queue.endAll(because: reason)
    }
}
