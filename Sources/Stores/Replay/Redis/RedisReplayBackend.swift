import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The Redis master, on the connection for looks.
struct RedisMaster {
    let connection: RedisConnection
    let target: UpstreamTarget
    /// The server's name for messages.
    let name: String
    /// The name of the script in the server.
    var script = ""
}

/// Entries in Redis, each inserted by the script if its slot's marker has the epoch's token.
///
/// Safe to share: only the guard's own loop uses the variables.
final class RedisReplayBackend: SharedReplayBackend, @unchecked Sendable {
    typealias Client = RedisLoopClient
    typealias Server = RedisMaster

    static let kind = SharedReplayKind.redis
    static let pauses = (least: 0, most: 500, retry: 200)

    let settings: SharedReplaySettings
    let record: ReplayEpochRecord
    private let address: RedisAddress
    private let targets: [UpstreamTarget]
    private let keys: RedisReplayKeys

    // Confined to the guard's own loop.
    private var master: RedisMaster?
    private var clocks = RedisClockWatch()
    /// The identity whose clock is watched.
    private var watched: ReplayDataSet?
    /// The identity of the epoch before the servers were asked: another node may change the record later, and
    /// names another master.
    private var sought: ReplayDataSet?
    /// The token whose markers were found or written since the last suspicion.
    private var marked: String?
    /// Whether the store was the cause of the last failure.
    private var hasStoreFailed = false

    init(
        _ address: RedisAddress, store: any MetaStore, settings: SharedReplaySettings
    ) throws(OperationalError) {
        (self.address, self.settings) = (address, settings)
        record = ReplayEpochRecord(store, of: .redis, secret: settings.secret)
        keys = RedisReplayKeys(settings.secret)
        let anchors = address.authorityFile.map { TLSContext.TrustAnchors.file($0) } ?? .system
        var targets: [UpstreamTarget] = []
        for server in address.servers {
            do {
                let tls = address.isEncrypted ? try TLSContext(trusting: anchors) : nil
                let target = UpstreamTarget(host: server.host, port: Int(server.port), tls: tls)
                target.keepResolving()
                targets.append(target)
            } catch {
                throw OperationalError(.failed, message: "--replay: \(error.description)")
            }
        }
        self.targets = targets
    }

    func client(
        on loop: EventLoop, grants: ReplayGrants<RedisReplayGrant>, suspect: @escaping @Sendable () -> Void
    ) -> RedisLoopClient {
        RedisLoopClient(on: loop, address: address, grants: grants, suspect: suspect)
    }

    func obstacle(
        to entry: ReplayEntry, now: Int64, under grant: RedisReplayGrant
    ) -> (reason: String, canEnd: Bool)? {
        guard entry.created + grant.epoch.need.seconds < now + ReplayEpoch.slack else { return nil }
        return ("which is older than entries are kept", false)
    }

    func insertion(
        of entry: ReplayEntry, now: Int64, under grant: RedisReplayGrant
    ) -> RedisLoopClient.Insertion {
        let command = RedisReplayScript.call(
            grant.script, names: keys.names(of: entry), epoch: grant.epoch, created: entry.created, now: now)
        return .init(command: command, grant: grant)
    }

    // MARK: Servers

    /// The first server that is a master as the guard needs it, but the one of the current epoch before
    /// others: of two that are masters, all nodes must use the same one.
    private func findMaster(on loop: EventLoop) async throws(OperationalError) -> RedisMaster {
        sought = try current()?.identity
        marked = nil
        var found: RedisMaster?
        var failure = OperationalError(.unreachable, message: "Redis: no server is named")
        for (server, target) in zip(address.servers, targets) {
            do throws(OperationalError) {
                let (master, identity) = try await master(at: server, target, on: loop)
                if found == nil || identity == sought {
                    found?.connection.close()
                    found = master
                } else {
                    master.connection.close()
                }
                if sought == nil || identity == sought { break }
            } catch {
                // An error from a server that responds is more useful than one from a server that is down.
                if failure.kind == .unreachable || error.kind != .unreachable { failure = error }
            }
        }
        guard var found else { throw failure }
        do throws(OperationalError) {
            found.script = try await found.connection.load(script: RedisReplayScript.text)
        } catch {
            found.connection.close()
            throw error
        }
        return found
    }

    private func master(
        at server: RedisAddress.Server, _ target: UpstreamTarget, on loop: EventLoop
    ) async throws(OperationalError) -> (RedisMaster, ReplayDataSet) {
        let connection = try await RedisConnection.open(
            to: target, of: address, name: server.text, on: loop)
        do throws(OperationalError) {
            let status = try await checkedStatus(of: connection)
            return (RedisMaster(connection: connection, target: target, name: server.text), status.identity)
        } catch {
            connection.close()
            throw error
        }
    }

    func disconnect() { master.take()?.connection.close() }

    /// The server's state, once it and its clock are as the guard needs them.
    private func checkedStatus(of connection: RedisConnection) async throws(OperationalError)
        -> RedisServerStatus
    {
        let status = try await connection.status()
        do throws(OperationalError) {
            try status.check(window: settings.retention.with { $0.window })
        } catch {
            throw connection.failure(error.message, kind: error.kind)
        }
        if status.identity != watched {
            clocks.forgetServer()
            watched = status.identity
        }
        let before = EventLoop.monotonicSeconds()
        let time = try await connection.time()
        let now = settings.clock.now
        clocks.note(time, between: before, and: EventLoop.monotonicSeconds(), now: now)
        try SharedReplayKind.redis.check(clock: time, now: now)
        return status
    }

    // MARK: Epochs

    /// What the store has.
    private func current() throws(OperationalError) -> ReplayEpoch? {
        do {
            return try record.current()
        } catch {
            hasStoreFailed = true
            throw error
        }
    }

    /// Without the store, the last grant holds: Redis' markers and each connection's data set are compared
    /// all the same.
    func holdsGrant(after error: OperationalError) -> Bool {
        defer { hasStoreFailed = false }
        return hasStoreFailed
    }

    func failure(_ text: String) -> OperationalError { OperationalError(.failed, message: text) }

    func look(on loop: EventLoop, isSuspected: Bool) async throws(OperationalError) -> ReplayLook<Server> {
        let master: RedisMaster
        if let kept = self.master { master = kept } else { master = try await findMaster(on: loop) }
        self.master = master
        if isSuspected { marked = nil }
        let began = EventLoop.monotonicSeconds()
        let status = try await checkedStatus(of: master.connection)
        let serverID = try await serverID(on: master.connection)
        try await exchangeHead(on: master.connection)
        return ReplayLook(
            server: master, title: "Redis at \(master.name)", identity: status.identity, serverID: serverID,
            evicted: status.evicted, epoch: try current(), began: began)
    }

    /// The server's identifier. A server that has none is another server or has lost its contents, and gets a
    /// new one.
    private func serverID(on connection: RedisConnection) async throws(OperationalError) -> String {
        let reply = try await connection.result(of: ["GET", keys.server])
        if let text = reply.text, ReplayDataSet.isID(text) { return text }
        return Hex.encode(SystemRandom().bytes(16).span)
    }

    /// A store that is put back to an earlier copy does not take Redis with it.
    private func exchangeHead(on connection: RedisConnection) async throws(OperationalError) {
        let reply = try await connection.result(of: ["GET", keys.head])
        let kept = reply.text.flatMap { Hex.decode($0) }
        guard let next = settings.exchangeHead(kept) else { return }
        _ = try await connection.result(of: ["SET", keys.head, Hex.encode(next.span)], named: "SET")
    }

    func loss(
        of epoch: ReplayEpoch, in look: Look, known: ReplayEpoch?
    ) async throws(OperationalError) -> ReplayLoss? {
        guard epoch.identity == look.identity || epoch.identity == sought else {
            throw OperationalError(.unreachable, message: "Redis: another node uses another master")
        }
        guard epoch.identity == look.identity else {
            return ReplayLoss(reason: "Redis was restarted or replaced")
        }
        guard epoch.evicted == look.evicted else {
            return ReplayLoss(reason: "Redis dropped keys to make room")
        }
        if epoch.periods.lieAhead(of: settings.clock.now) {
            return ReplayLoss(reason: "the clock was set back")
        }
        guard try await isMarked(by: epoch, on: look.server.connection) else {
            return ReplayLoss(reason: "Redis lost its contents", isOfMarks: true)
        }
        // A jump ends entries early that were admitted before it, and keeps those that are admitted after
        // it: the floor need not cover the time to which the clocks may have jumped.
        return clocks.jumped.map { ReplayLoss(reason: "the clock of Redis jumped", time: $0) }
    }

    /// The probe looks at one marker at each look, and each insertion at its own: all of them are read after
    /// a suspicion alone.
    private func isMarked(
        by epoch: ReplayEpoch, on connection: RedisConnection
    ) async throws(OperationalError) -> Bool {
        if marked == epoch.token { return true }
        let replies = try await connection.replies(
            to: (0..<RedisReplayKeys.tags).map { ["GET", keys.marker($0)] })
        marked = replies.allSatisfy { $0 == .bulk(Array(epoch.token.utf8)) } ? epoch.token : nil
        return marked != nil
    }

    /// Throws if the server takes no writes, before an epoch begins whose markers could not be written.
    func prepareChange(beginsEpoch: Bool, in look: Look) async throws(OperationalError) {
        guard beginsEpoch else { return }
        let name = keys.probe(SystemRandom().bytes(17)).entry
        _ = try await look.server.connection.result(of: ["SET", name, "", "PX", "1000"], named: "SET")
    }

    func mark(_ epoch: ReplayEpoch, in look: Look) async throws(OperationalError) {
        clocks.forgetJump()
        let connection = look.server.connection
        let replies = try await connection.replies(
            to: (0..<RedisReplayKeys.tags).map { ["SET", keys.marker($0), epoch.token] }
                + [["SET", keys.server, epoch.serverID ?? ""]])
        for case .error(let message) in replies {
            throw connection.failure("SET: \(RedisServerStatus.quotable(message))")
        }
        marked = epoch.token
    }

    /// Entries end by Redis' clock: those that are there were given a time to end.
    func widened(_ epoch: ReplayEpoch, to need: ReplayRetention, now: Int64) -> ReplayEpoch {
        epoch.widened(to: need, now: now)
    }

    /// Inserts an entry of the probe's own, so that a server which takes no writes is found without requests.
    func grant(for epoch: ReplayEpoch, in look: Look) async throws(OperationalError) -> RedisReplayGrant {
        let master = look.server
        let now = settings.clock.now
        let names = keys.probe(SystemRandom().bytes(17))
        let reply = try await master.connection.result(of: [
            "EVALSHA", master.script, "2", names.entry, names.marker, epoch.token, String(now),
            String((now + 2 * ReplayEpoch.clockTolerance) * 1_000),
        ])
        guard case .integer(let number) = reply, let outcome = RedisReplayScript.Outcome(rawValue: number)
        else {
            throw master.connection.failure("the script returned what it does not return")
        }
        switch outcome {
        case .inserted, .present:
            return RedisReplayGrant(
                epoch: epoch, target: master.target, server: master.name, script: master.script)
        case .epochLost: throw master.connection.failure("Redis lost its contents")
        case .clocksDiffer: throw master.connection.failure("the clocks differ")
        }
    }
}
