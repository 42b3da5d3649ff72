import CountersignAuthority
import CountersignHTTP
import CountersignWire
import Synchronization

/// A loop's connection to Redis, which pipelines the insertions of all its requests. Confined to the loop,
/// and safe to share for that reason.
///
/// An insertion without a reply in time ends the connection: replies come in order, so those after it would
/// be late too. After a failure, insertions fail at once until another connection is open.
final class RedisLoopClient: InsertionQueue<RedisReplayGrant, Void>, ReplayLoopClient, @unchecked Sendable {
    typealias Grant = RedisReplayGrant

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

    private let address: RedisAddress
    private let pause: LoopAlarm
    private var connection: RedisConnection?
    private var identity: ReplayDataSet?
    private var isOpening = false
    /// Whether an attempt or a connection has failed since the last success.
    private var hasFailed = false
    private var outgoing: [UInt8] = []

    init(
        on loop: EventLoop, address: RedisAddress, grants: ReplayGrants<RedisReplayGrant>,
        suspect: @escaping @Sendable () -> Void
    ) {
        self.address = address
        pause = LoopAlarm(loop)
        super.init(on: loop, grants: grants, suspect: suspect)
    }

    /// Connects if there is a grant and no connection for it.
    func prepare() {
        guard let grant = grants.grant, !isOpening else { return }
        if let connection, identity != grant.epoch.identity { connection.close() }
        guard connection == nil else { return }
        isOpening = true
        Task.detached(executorPreference: loop) { [self] in await serve(grant) }
    }

    func insert(
        _ insertion: Insertion, resuming continuation: UnsafeContinuation<InsertionOutcome, Never>
    ) {
        let grant = insertion.grant
        if connection == nil || identity != grant.epoch.identity { prepare() }
        guard connection.map({ !$0.service.isClosed }) ?? false || !hasFailed else {
            return continuation.resume(returning: .failed("Redis at \(grant.server) is away"))
        }
        guard append((), resuming: continuation) else { return }
        outgoing.append(contentsOf: insertion.command)
        scheduleSend()
    }

    override func send() {
        guard let connection, !outgoing.isEmpty else { return }
        connection.service.send(outgoing)
        outgoing.removeAll(keepingCapacity: true)
    }

    /// Connects, and reads replies until the connection ends.
    private func serve(_ grant: RedisReplayGrant) async {
        var reason = "the connection to Redis was closed"
        do throws(OperationalError) {
            let opened = try await open(grant)
            (connection, identity) = (opened, grant.epoch.identity)
            isUsable.store(true, ordering: .relaxed)
            (isOpening, hasFailed) = (false, false)
            send()
            while let reply = try? await opened.nextReply(), take(reply) {}
            opened.close()
        } catch {
            reason = error.message
        }
        // Until another connection is open, nothing waits.
        (connection, identity) = (nil, nil)
        isUsable.store(false, ordering: .relaxed)
        (isOpening, hasFailed) = (true, true)
        giveUp(because: reason)
        suspect()
        await pause.wait(milliseconds: RedisLoopClient.pauseMilliseconds)
        isOpening = false
        prepare()
    }

    private func open(_ grant: RedisReplayGrant) async throws(OperationalError) -> RedisConnection {
        let connection = try await RedisConnection.open(
            to: grant.target, of: address, name: grant.server, on: loop)
        do throws(OperationalError) {
            let status = try await connection.status()
            guard status.identity == grant.epoch.identity, status.role == "master" else {
                throw connection.failure("it holds another data set than the epoch's")
            }
            _ = try await connection.load(script: RedisReplayScript.text)
            return connection
        } catch {
            connection.close()
            throw error
        }
    }

    /// Ends the oldest insertion; false if the connection must be closed.
    private func take(_ reply: RESPReply) -> Bool {
        switch reply {
        case .integer(let number):
            let outcome = RedisReplayScript.Outcome(rawValue: number)
            if outcome == .epochLost { suspect() }
            return endFirst(outcome?.result ?? .failed("Redis returned \(number)")) && outcome != nil
        case .error(let message):
            // The script is loaded on each new connection, and the data set is compared.
            return endFirst(.failed("Redis: \(RedisServerStatus.quotable(message))"))
                && !RedisLoopClient.finalErrors.contains(where: message.hasPrefix)
        default:
            _ = endFirst(.failed("Redis sent a reply of another kind"))
            return false
        }
    }

    override func endOverdue() {
        guard isOverdue else { return }
        hasFailed = true
        isUsable.store(false, ordering: .relaxed)
        giveUp(because: lateness)
        connection?.close()
    }

    private func giveUp(because reason: String) {
        outgoing = []
        endAll(because: reason)
    }
}
