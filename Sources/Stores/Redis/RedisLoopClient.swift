import CountersignHTTP
import CountersignWire

/// A loop's connection to Redis, over which the insertions of all its requests are pipelined. Confined to the
/// loop.
///
/// Every insertion ends within ``patience``. One that does not ends the connection: replies come in order, so
/// that those behind it would be late too. After a failure, insertions fail at once until another connection
/// is open.
final class RedisLoopClient: @unchecked Sendable {
    /// How an insertion ended.
    enum Outcome: Sendable {
        case replied(RedisReplayScript.Outcome)
        /// The reason why it is not known whether the entry was inserted, or why it was not.
        case failed(String)
    }

    private struct Waiter {
        let continuation: UnsafeContinuation<Outcome, Never>
        /// Nanoseconds of the monotonic clock.
        let deadline: Int64
    }

    /// Milliseconds for an insertion, beside at most ``timerMilliseconds`` until that is noticed.
    static let patience = 70
    private static let timerMilliseconds = 10
    private static let pauseMilliseconds = 100
    static let mostWaiting = 4_096

    let loop: EventLoop
    private let address: RedisAddress
    private let state: RedisReplayState
    /// Called when the server may have lost entries, or is another one.
    private let suspect: @Sendable () -> Void
    private let pause: LoopAlarm
    private var timer: LoopTimer?
    private var service: ServiceConnection?
    private var identity: RedisIdentity?
    private var reader = RESPReader()
    private var isOpening = false
    /// Whether an attempt or a connection has failed since the last success.
    private var hasFailed = false
    private var waiting: [Waiter] = []
    private var firstWaiting = 0
    private var outgoing: [UInt8] = []
    private var isFlushScheduled = false

    init(
        on loop: EventLoop, address: RedisAddress, state: RedisReplayState,
        suspect: @escaping @Sendable () -> Void
    ) {
        self.loop = loop
        self.address = address
        self.state = state
        self.suspect = suspect
        pause = LoopAlarm(loop)
        timer = LoopTimer(loop, milliseconds: RedisLoopClient.timerMilliseconds) { [unowned self] in
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

    /// Sends `command`, an `EVALSHA` of the script for this grant, and resumes the continuation with its
    /// outcome.
    func insert(
        _ command: [UInt8], under grant: RedisReplayGrant,
        resuming continuation: UnsafeContinuation<Outcome, Never>
    ) {
        if service == nil || identity != grant.epoch.identity { prepare() }
        guard service.map({ !$0.isClosed }) ?? false || !hasFailed else {
            return continuation.resume(returning: .failed("Redis at \(grant.server) is away"))
        }
        guard waiting.count - firstWaiting < RedisLoopClient.mostWaiting else {
            return continuation.resume(returning: .failed("too many insertions wait for Redis"))
        }
        let deadline = RedisLoopClient.now() + Int64(RedisLoopClient.patience) * 1_000_000
        waiting.append(Waiter(continuation: continuation, deadline: deadline))
        outgoing.append(contentsOf: command)
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
        guard firstWaiting < waiting.count else { throw .malformed }
        let waiter = waiting[firstWaiting]
        firstWaiting += 1
        if firstWaiting == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            firstWaiting = 0
            timer?.stop()
        } else if firstWaiting > RedisLoopClient.mostWaiting {
            waiting.removeFirst(firstWaiting)
            firstWaiting = 0
        }
        switch reply {
        case .integer(let number):
            guard let outcome = RedisReplayScript.Outcome(rawValue: number) else {
                waiter.continuation.resume(returning: .failed("Redis returned \(number)"))
                throw .malformed
            }
            if outcome == .epochLost { suspect() }
            waiter.continuation.resume(returning: .replied(outcome))
        case .error(let message):
            waiter.continuation.resume(returning: .failed("Redis: \(RedisServerStatus.quotable(message))"))
            // The script is loaded on each new connection, and the data set is compared.
            if ["NOSCRIPT", "READONLY", "LOADING", "MASTERDOWN", "NOAUTH", "NOPERM", "MOVED"].contains(
                where: message.hasPrefix)
            {
                throw .malformed
            }
        default:
            waiter.continuation.resume(returning: .failed("Redis sent a reply of another kind"))
            throw .malformed
        }
    }

    private func endOverdue() {
        guard firstWaiting < waiting.count else {
            timer?.stop()
            return
        }
        guard waiting[firstWaiting].deadline <= RedisLoopClient.now() else { return }
        hasFailed = true
        endAll(because: "Redis took longer than \(RedisLoopClient.patience) ms")
        service?.close()
    }

    private func endAll(because reason: String) {
        let ended = waiting[firstWaiting...]
        waiting = []
        firstWaiting = 0
        outgoing = []
        timer?.stop()
        for waiter in ended { waiter.continuation.resume(returning: .failed(reason)) }
    }

    private static func now() -> Int64 { EventLoop.nanoseconds() }
}
