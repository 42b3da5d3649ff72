import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignMemory
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Synchronization

/// The replay guard of several nodes: entries in Redis, and the epoch that tells of their loss in the durable
/// store. Source: docs/decisions/0071-redis-replay-guard.md.
///
/// A request is inserted by one command over a connection of its loop. Without Redis, without the store's
/// confirmation or after a loss it is refused; nothing falls back to memory.
package final class RedisReplayGuard: ReplayGuard {
    package struct Usage: Sendable, Equatable {
        /// The current epoch's number; 0 before the first epoch.
        package var epoch: Int64
        /// Signatures made at or before this time are refused; 0 for no bound.
        package var floor: Int64
        package var refusals: UInt64
        /// Why nothing is inserted now; nil if it is.
        package var failure: String?
    }

    private let address: RedisAddress
    private let keys: RedisReplayKeys
    private let state = RedisReplayState()
    private let retention: Locked<ReplayRetention>
    private let controller: RedisReplayController
    /// Creation times that an operator's confirmation of the clock refuses.
    private let refused: TimeIntervals
    private let clock: any TimeSource
    private let clients = Locked<[RedisLoopClient]>([])

    /// `secret` is the deployment's own; `store` is a connection that no other part uses. `formerFloor` tells
    /// up to where a replay file may have admitted signatures, and `refused` which others are refused. `note`
    /// gets one line whenever the state changes.
    package init(
        _ address: RedisAddress, secret: Secret, store: any MetaStore, retention: ReplayRetention,
        refused: TimeIntervals = TimeIntervals(), formerFloor: @escaping @Sendable () -> Int64 = { 0 },
        clock: any TimeSource = SystemTime(), note: @escaping @Sendable (String) -> Void
    ) throws(OperationalError) {
        self.address = address
        (self.refused, self.clock) = (refused, clock)
        keys = RedisReplayKeys(secret)
        self.retention = Locked(retention)
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
        controller = try RedisReplayController(
            address, targets: targets, keys: keys,
            record: ReplayEpochRecord(store, secret: secret), state: state, retention: self.retention,
            formerFloor: formerFloor, clock: clock, note: note)
    }

    /// Begins to watch Redis; returns once it can be used, and throws the reason if it cannot.
    package func start() throws(OperationalError) {
        controller.didGrant = { [clients] in
            for client in clients.with({ $0 }) { client.loop.perform { client.prepare() } }
        }
        try controller.start()
        try state.waitForFirstGrant()
    }

    /// Gives a loop a connection of its own. Call before the loop starts.
    package func attach(to loop: EventLoop) {
        let client = RedisLoopClient(on: loop, address: address, state: state) { [controller] in
            controller.suspect()
        }
        clients.with { $0.append(client) }
        loop.perform { client.prepare() }
    }

    /// Adapts what entries are kept for to the policies.
    package func setRetention(_ need: ReplayRetention) {
        let isNew = retention.with { retention in
            defer { retention = need }
            return retention != need
        }
        if isNew { controller.wake() }
    }

    package func stop() { controller.stop() }

    package var usage: Usage {
        let grant = state.grant
        return Usage(
            epoch: grant?.epoch.number ?? 0, floor: grant?.epoch.floor ?? 0,
            refusals: state.refusals.load(ordering: .relaxed), failure: state.failure)
    }

    package func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool {
        _ = try admissible(entry, now: clock.now)
        return false
    }

    package func insert(_ entry: ReplayEntry) async throws(Refusal) {
        // Not the entry's time: a request's body may have taken long to arrive.
        let now = clock.now
        let grant = try admissible(entry, now: now)
        let command = RedisReplayScript.call(
            grant.script, names: keys.names(of: entry), epoch: grant.epoch, created: entry.created,
            now: now)
        let all = clients.with { $0 }
        guard let client = all.first(where: { $0.loop.isOnLoop }) ?? all.first else {
            throw state.refusal("no loop runs yet")
        }
        let outcome: RedisLoopClient.Outcome
        if client.loop.isOnLoop {
            outcome = await withUnsafeContinuation {
                client.insert(command, under: grant, resuming: $0)
            }
        } else {
            outcome = await withUnsafeContinuation { continuation in
                client.loop.perform { client.insert(command, under: grant, resuming: continuation) }
            }
        }
        switch outcome {
        case .replied(.inserted): return
        case .replied(.present):
            throw Refusal(.replayed, detail: "scheme \(entry.scheme.rawValue), key \(entry.keyID)")
        case .replied(.epochLost): throw state.refusal("Redis lost the epoch")
        case .replied(.clocksDiffer):
            throw state.refusal(
                "the clock of Redis differs from this machine's by more than \(ReplayEpoch.clockTolerance) s")
        case .failed(let reason): throw state.refusal(reason)
        }
    }

    /// Always passes: only an insertion decides, and a look-up would be a round trip.
    package func lookUp(_ entry: ReplayEntry) throws(Refusal) {}

    /// The grant under which the entry may be inserted.
    private func admissible(_ entry: ReplayEntry, now: Int64) throws(Refusal) -> RedisReplayGrant {
        guard UInt32(exactly: entry.created) != nil, entry.created > 0, UInt32(exactly: now) != nil else {
            throw Refusal(.stale, detail: "created \(entry.created) is out of the range of the replay guard")
        }
        let grant = try state.current()
        if let bound = grant.epoch.bound(for: entry.created, now: now) {
            let wait = Int(clamping: max(bound - now + 1, 1))
            throw Refusal(
                .unavailable, detail: "created \(entry.created), but replays up to \(bound) cannot be told",
                retryAfter: wait)
        }
        guard grant.epoch.periods.contain(now) else {
            throw state.refusal("the clock has jumped")
        }
        if refused.contains(entry.created) || grant.epoch.periods.refused.contains(entry.created) {
            throw Refusal(
                .unavailable,
                detail: "created \(entry.created), which may have been admitted by a wrong clock")
        }
        guard entry.created + grant.epoch.need.seconds >= now + ReplayEpoch.slack else {
            throw state.refusal("created \(entry.created), which is older than entries are kept")
        }
        return grant
    }
}
