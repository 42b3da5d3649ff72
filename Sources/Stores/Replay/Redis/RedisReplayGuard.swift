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
package final class RedisReplayGuard: SharedReplayGuard {
    private let address: RedisAddress
    private let keys: RedisReplayKeys
    private let state: ReplayGrants<RedisReplayGrant>
    private let retention: Locked<ReplayRetention>
    private let controller: RedisReplayController
    /// Creation times that an operator's confirmation of the clock refuses.
    private let refused: TimeIntervals
    private let clock: any TimeSource
    private let clients = ReplayLoopClients<RedisLoopClient>()

    package var kind: SharedReplayKind { .redis }

    /// `secret` is the deployment's own; `store` is a connection that no other part uses. `formerFloor` tells
    /// up to where a replay file may have admitted signatures, and `refused` which others are refused. `note`
    /// gets one line whenever the state changes.
    package init(
        _ address: RedisAddress, secret: Secret, store: any MetaStore, retention: ReplayRetention,
        refused: TimeIntervals = TimeIntervals(), formerFloor: @escaping @Sendable () -> Int64 = { 0 },
        patience: Int = SharedReplayKind.patience, clock: any TimeSource = SystemTime(),
        note: @escaping @Sendable (String) -> Void
    ) throws(OperationalError) {
        state = ReplayGrants(of: .redis, patience: patience)
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
            record: ReplayEpochRecord(store, of: .redis, secret: secret), state: state,
            retention: self.retention, formerFloor: formerFloor, clock: clock, note: note)
    }

    package func start() throws(OperationalError) {
        controller.didGrant = { [clients] in clients.prepareAll() }
        try controller.start()
        try state.waitForFirstGrant()
    }

    package func attach(to loop: EventLoop) {
        let client = RedisLoopClient(on: loop, address: address, state: state) { [controller] in
            controller.suspect()
        }
        clients.add(client)
    }

    package func setRetention(_ need: ReplayRetention) {
        let isNew = retention.with { retention in
            defer { retention = need }
            return retention != need
        }
        if isNew { controller.wake() }
    }

    package func stop() { controller.stop() }

    package var usage: SharedReplayUsage {
        let grant = state.grant
        return SharedReplayUsage(
            epoch: grant?.epoch.number ?? 0, floor: grant?.epoch.floor ?? 0,
            refusals: state.refusals.load(ordering: .relaxed), failure: state.failure ?? clients.failure)
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
        try state.admit(entry, after: await clients.insert(.init(command: command, grant: grant)))
    }

    /// Always passes: only an insertion decides, and a look-up would be a round trip.
    package func lookUp(_ entry: ReplayEntry) throws(Refusal) {}

    /// The grant under which the entry may be inserted.
    private func admissible(_ entry: ReplayEntry, now: Int64) throws(Refusal) -> RedisReplayGrant {
        let grant = try state.current(for: entry, now: now, refusing: refused)
        guard entry.created + grant.epoch.need.seconds >= now + ReplayEpoch.slack else {
            throw state.refusal("created \(entry.created), which is older than entries are kept")
        }
        return grant
    }
}
