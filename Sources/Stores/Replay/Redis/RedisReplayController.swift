import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire
import Synchronization

/// Watches the Redis master and the epoch, on a loop of its own: finds losses, begins epochs, and publishes
/// the grant under which the other loops insert. Confined to that loop, except for `start`, `wake`, `stop`
/// and the settings that the initialiser was given.
///
/// It reads the store on its loop, which no request waits for.
final class RedisReplayController: @unchecked Sendable {
    private static let checkMilliseconds = 500
    private static let pauseMilliseconds = 200
    /// How long another node has for writing the markers of an epoch that it began, in nanoseconds.
    private static let markerPatience: Int64 = 1_000_000_000

    let loop: EventLoop
    private let address: RedisAddress
    private let targets: [UpstreamTarget]
    private let keys: RedisReplayKeys
    private let record: ReplayEpochRecord
    private let state: ReplayGrants<RedisReplayGrant>
    private let retention: Locked<ReplayRetention>
    /// The floor of the guard that the deployment had before.
    private let formerFloor: @Sendable () -> Int64
    private let clock: any TimeSource
    private let note: @Sendable (String) -> Void
    /// Called on the loop after a grant has changed.
    var didGrant: @Sendable () -> Void = {}
    private let alarm: LoopAlarm
    private let isStopping = Atomic(false)
    private var clocks = RedisClockWatch()
    /// The token of the epoch whose markers were last found or written.
    private var known: String?
    /// Whether they are there since the last suspicion.
    private var isVerified = false
    private let isSuspected = Atomic(false)
    /// Whether the store was the cause of the last failure.
    private var hasStoreFailed = false
    private var reported: String?
    /// The identity whose clock is watched.
    private var watched: ReplayDataSet?

    init(
        _ address: RedisAddress, targets: [UpstreamTarget], keys: RedisReplayKeys, record: ReplayEpochRecord,
        state: ReplayGrants<RedisReplayGrant>, retention: Locked<ReplayRetention>,
        formerFloor: @escaping @Sendable () -> Int64, clock: any TimeSource,
        note: @escaping @Sendable (String) -> Void
    ) throws(OperationalError) {
        self.address = address
        self.targets = targets
        self.keys = keys
        self.record = record
        self.state = state
        self.retention = retention
        self.formerFloor = formerFloor
        self.clock = clock
        self.note = note
        do {
            loop = try EventLoop()
        } catch {
            throw OperationalError(error, in: "redis")
        }
        alarm = LoopAlarm(loop)
    }

    func start() throws(OperationalError) {
        do {
            try loop.start(name: "redis")
        } catch {
            throw OperationalError(error, in: "redis")
        }
        loop.perform { [self] in
            Task.detached(executorPreference: loop) { [self] in await run() }
        }
    }

    /// Checks now. Thread-safe.
    func wake() { loop.perform { [self] in alarm.ring() } }

    /// Checks now whether Redis still has the epoch. Thread-safe.
    func suspect() {
        isSuspected.store(true, ordering: .relaxed)
        wake()
    }

    func stop() {
        isStopping.store(true, ordering: .relaxed)
        loop.stop()
        loop.join()
    }

    private func run() async {
        while !isStopping.load(ordering: .relaxed) {
            do throws(OperationalError) {
                try await watch()
            } catch {
                // Without the store, the last grant holds until its lease ends. Redis' markers and each
                // connection's data set are compared all the same.
                if !hasStoreFailed || state.grant == nil { state.revoke(because: error) }
                hasStoreFailed = false
                report("unavailable: \(error.message)")
            }
            await alarm.wait(milliseconds: RedisReplayController.pauseMilliseconds)
        }
    }

    /// What the store has.
    private func current() throws(OperationalError) -> ReplayEpoch? {
        do {
            return try record.current()
        } catch {
            hasStoreFailed = true
            throw error
        }
    }

    private func report(_ text: String) {
        guard text != reported else { return }
        reported = text
        note(text)
    }

    /// Finds the master, and watches it until something fails.
    private func watch() async throws(OperationalError) {
        // Read before the servers: a record that another node changes later names another master.
        let sought = try current()
        let (connection, target, server) = try await findMaster(preferring: sought?.identity)
        defer { connection.close() }
        let script = try await connection.load(script: RedisReplayScript.text)
        isVerified = false
        while true {
            if isSuspected.exchange(false, ordering: .relaxed) { isVerified = false }
            let confirmed = EventLoop.monotonicSeconds()
            let status = try await checkedStatus(of: connection)
            let epoch = try await settledEpoch(
                for: status, sought: sought, on: connection)
            try await probe(epoch, script: script, on: connection)
            let isNew = state.grant.map { $0.epoch != epoch } ?? true
            state.publish(
                RedisReplayGrant(epoch: epoch, target: target, server: server, script: script),
                confirmed: confirmed)
            report("Redis at \(server) is in use, epoch \(epoch.number)")
            if isNew { didGrant() }
            await alarm.wait(milliseconds: RedisReplayController.checkMilliseconds)
            if isStopping.load(ordering: .relaxed) { return }
        }
    }

    /// The first server that is a master as the guard needs it, but the one of the current epoch before
    /// others: of two that are masters, all nodes must use the same one.
    private func findMaster(
        preferring identity: ReplayDataSet?
    ) async throws(OperationalError) -> (RedisConnection, UpstreamTarget, String) {
        var found: (RedisConnection, UpstreamTarget, String)?
        var failure = OperationalError(.unreachable, message: "Redis: no server is named")
        for (server, target) in zip(address.servers, targets) {
            do throws(OperationalError) {
                let connection = try await RedisConnection.open(
                    to: target, of: address, name: server.text, on: loop)
                do throws(OperationalError) {
                    let status = try await checkedStatus(of: connection)
                    if identity == nil || status.identity == identity || address.servers.count == 1 {
                        found?.0.close()
                        return (connection, target, server.text)
                    }
                } catch {
                    connection.close()
                    throw error
                }
                if found == nil { found = (connection, target, server.text) } else { connection.close() }
            } catch {
                // What is wrong with a server that answers says more than that another one is away.
                if failure.kind == .unreachable || error.kind != .unreachable { failure = error }
            }
        }
        guard let found else { throw failure }
        return found
    }

    /// The server's state, once it and its clock are as the guard needs them.
    private func checkedStatus(of connection: RedisConnection) async throws(OperationalError)
        -> RedisServerStatus
    {
        let status = try await connection.status()
        do throws(OperationalError) {
            try status.check(window: retention.with { $0.window })
        } catch {
            throw connection.failure(error.message, kind: error.kind)
        }
        if status.identity != watched {
            clocks.forgetServer()
            watched = status.identity
        }
        let before = EventLoop.monotonicSeconds()
        let time = try await connection.time()
        clocks.note(time, between: before, and: EventLoop.monotonicSeconds(), now: clock.now)
        try SharedReplayKind.redis.check(clock: time, now: clock.now)
        return status
    }

    /// The deployment's epoch, after what was lost and what changed is accounted for.
    private func settledEpoch(
        for status: RedisServerStatus, sought: ReplayEpoch?, on connection: RedisConnection
    ) async throws(OperationalError) -> ReplayEpoch {
        let need = retention.with { $0 }
        for _ in 0..<8 {
            let now = clock.now
            guard let epoch = try current() else {
                guard known == nil else {
                    throw OperationalError(
                        .failed, message: "another gateway of this deployment uses another replay guard")
                }
                try await checkWrites(on: connection)
                guard
                    let begun = try record.begin(
                        for: status.identity, evicted: status.evicted, need: need, formerFloor: formerFloor,
                        now: now)
                else { continue }
                try await writeMarkers(of: begun, on: connection)
                reportFloor(of: begun, because: "the guard is Redis from now on")
                continue
            }
            guard epoch.identity == status.identity || epoch.identity == sought?.identity else {
                throw OperationalError(.unreachable, message: "Redis: another node uses another master")
            }
            if let loss = try await loss(of: epoch, for: status, on: connection) {
                try await checkWrites(on: connection)
                let next = epoch.next(
                    for: status.identity, evicted: status.evicted, need: need, now: min(loss.time ?? now, now)
                )
                guard try record.replace(epoch, by: next) == next else { continue }
                clocks.forgetJump()
                try await writeMarkers(of: next, on: connection)
                reportFloor(of: next, because: loss.reason)
                continue
            }
            if epoch.need.union(need) != epoch.need {
                _ = try record.replace(epoch, by: epoch.widened(to: need, now: now))
            } else if !epoch.periods.contain(now + ReplayPeriods.renewal) {
                _ = try record.replace(epoch, by: epoch.extended(at: now))
            } else {
                return epoch
            }
        }
        throw OperationalError(.failed, message: "the epoch of the replay guard keeps changing")
    }

    private func reportFloor(of epoch: ReplayEpoch, because reason: String) {
        guard epoch.floor > 0 else { return }
        note("\(reason); epoch \(epoch.number): signatures made up to \(epoch.floor) are refused")
    }

    /// Why entries of this epoch may be lost, and when, if not just now; nil if they are not.
    private func loss(
        of epoch: ReplayEpoch, for status: RedisServerStatus, on connection: RedisConnection
    ) async throws(OperationalError) -> (reason: String, time: Int64?)? {
        guard epoch.identity == status.identity else { return ("Redis was restarted or replaced", nil) }
        guard epoch.evicted == status.evicted else { return ("Redis dropped keys to make room", nil) }
        if epoch.periods.lieAhead(of: clock.now) { return ("the clock was set back", nil) }
        // The probe looks at one marker at each check, and each insertion at its own.
        guard !isVerified || known != epoch.token else { return jump }
        let end = EventLoop.nanoseconds() + RedisReplayController.markerPatience
        repeat {
            if try await hasMarkers(of: epoch, on: connection) {
                (known, isVerified) = (epoch.token, true)
                return jump
            }
            // Markers that were there once are gone; those of another node's epoch may be on their way.
            if known == epoch.token { break }
            await alarm.wait(milliseconds: 100)
        } while EventLoop.nanoseconds() < end
        return ("Redis lost its contents", nil)
    }

    /// A jump ends entries early that were admitted before it, and keeps those that are admitted after it:
    /// the floor need not cover the time to which the clocks may have jumped.
    private var jump: (reason: String, time: Int64?)? {
        clocks.jumped.map { ("the clock of Redis jumped", $0) }
    }

    private func hasMarkers(
        of epoch: ReplayEpoch, on connection: RedisConnection
    ) async throws(OperationalError) -> Bool {
        let replies = try await connection.replies(
            to: (0..<RedisReplayKeys.tags).map { ["GET", keys.marker($0)] })
        return replies.allSatisfy { $0 == .bulk(Array(epoch.token.utf8)) }
    }

    /// Throws if the server takes no writes, before an epoch begins whose markers could not be written.
    private func checkWrites(on connection: RedisConnection) async throws(OperationalError) {
        let name = keys.probe(SystemRandom().bytes(17)).entry
        _ = try await connection.result(of: ["SET", name, "", "PX", "1000"], named: "SET")
    }

    private func writeMarkers(
        of epoch: ReplayEpoch, on connection: RedisConnection
    ) async throws(OperationalError) {
        let replies = try await connection.replies(
            to: (0..<RedisReplayKeys.tags).map { ["SET", keys.marker($0), epoch.token] })
        for case .error(let message) in replies {
            throw connection.failure("SET: \(RedisServerStatus.quotable(message))")
        }
        (known, isVerified) = (epoch.token, true)
    }

    /// Inserts an entry of the probe's own, so that a server which takes no writes is found without requests.
    private func probe(
        _ epoch: ReplayEpoch, script: String, on connection: RedisConnection
    ) async throws(OperationalError) {
        let now = clock.now
        let names = keys.probe(SystemRandom().bytes(17))
        let reply = try await connection.result(of: [
            "EVALSHA", script, "2", names.entry, names.marker, epoch.token, String(now),
            String((now + 2 * ReplayEpoch.clockTolerance) * 1_000),
        ])
        guard case .integer(let number) = reply, let outcome = RedisReplayScript.Outcome(rawValue: number)
        else {
            throw connection.failure("the script returned what it does not return")
        }
        switch outcome {
        case .inserted, .present: return
        case .epochLost:
            isVerified = false
            throw connection.failure("Redis lost its contents")
        case .clocksDiffer: throw connection.failure("the clocks differ")
        }
    }
}
