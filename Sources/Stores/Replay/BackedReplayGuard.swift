import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire
import Synchronization

/// A replay guard on a server beside the nodes. Sources: docs/decisions/0071-redis-replay-guard.md and
/// docs/decisions/0073-postgresql-replay-guard.md.
///
/// A request is inserted over the connection of its loop. Without the server, without the store's
/// confirmation or after a loss it is refused; nothing falls back to memory. A loop of the guard's own, which
/// no request waits for, watches the server and the epoch: `BackedReplayGuard+Watch.swift`.
///
/// Safe to share: only that loop uses the variables.
final class BackedReplayGuard<Backend: SharedReplayBackend>: SharedReplayGuard, @unchecked Sendable {
    let backend: Backend
    let settings: SharedReplaySettings
    let grants: ReplayGrants<Backend.Client.Grant>
    let clients = ReplayLoopClients<Backend.Client>()
    let loop: EventLoop
    let alarm: LoopAlarm
    /// For pauses that ``wake()`` does not end.
    let rest: LoopAlarm
    let isStopping = Atomic(false)
    /// The identifier of the server that the last grant was for, until a look finds another server at its
    /// address.
    let usedServer = Locked<String?>(nil)

    // Confined to the guard's own loop.
    var isSuspected = false
    /// The last epoch that was there with its marks.
    var known: ReplayEpoch?
    var reported: String?

    var kind: SharedReplayKind { Backend.kind }

    var name: NodeReplayGuard {
        let place = usedServer.with { $0 }
        return NodeReplayGuard(kind: kind.rawValue, place: place, isAway: place != nil && grants.grant == nil)
    }

    init(_ backend: Backend) throws(OperationalError) {
        (self.backend, settings) = (backend, backend.settings)
        grants = ReplayGrants(of: Backend.kind, patience: settings.patience)
        do {
            loop = try EventLoop()
        } catch {
            throw OperationalError(error, in: Backend.kind.rawValue)
        }
        (alarm, rest) = (LoopAlarm(loop), LoopAlarm(loop))
    }

    func start() throws(OperationalError) {
        do {
            try loop.start(name: Backend.kind.rawValue)
        } catch {
            throw OperationalError(error, in: Backend.kind.rawValue)
        }
        loop.perform { [self] in
            Task.detached(executorPreference: loop) { [self] in await watch() }
        }
        try grants.waitForFirstGrant()
    }

    /// Looks now whether the server still has the epoch. Thread-safe.
    func wake() {
        loop.perform { [self] in
            isSuspected = true
            alarm.ring()
        }
    }

    func confirmAgain() {
        grants.suspend()
        wake()
    }

    func stop() {
        isStopping.store(true, ordering: .relaxed)
        loop.perform { [self] in
            rest.ring()
            alarm.ring()
        }
        loop.stop()
        loop.join()
    }

    func attach(to loop: EventLoop) {
        clients.add(backend.client(on: loop, grants: grants) { [weak self] in self?.wake() })
        wake()
    }

    func setRetention(_ need: ReplayRetention) {
        let isNew = settings.retention.with { retention in
            defer { retention = need }
            return retention != need
        }
        if isNew { wake() }
    }

    var usage: SharedReplayUsage {
        let grant = grants.grant
        return SharedReplayUsage(
            epoch: grant?.epoch.number ?? 0, floor: grant?.epoch.floor ?? 0,
            refusals: grants.refusals.load(ordering: .relaxed), failure: grants.failure ?? clients.failure)
    }

    func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool {
        _ = try admissible(entry, now: settings.clock.now)
        return false
    }

    func insert(_ entry: ReplayEntry) async throws(Refusal) {
        // Not the entry's time: a request's body may have taken long to arrive.
        let now = settings.clock.now
        let grant = try admissible(entry, now: now)
        let outcome = await clients.insert(backend.insertion(of: entry, now: now, under: grant))
        try grants.admit(entry, after: outcome)
    }

    /// Always passes: only an insertion decides, and a look-up would be a round trip.
    func lookUp(_ entry: ReplayEntry) throws(Refusal) {}

    /// The grant under which the entry may be inserted.
    private func admissible(_ entry: ReplayEntry, now: Int64) throws(Refusal) -> Backend.Client.Grant {
        let grant = try grants.current(for: entry, now: now, refusing: settings.refused)
        if let (reason, canEnd) = backend.obstacle(to: entry, now: now, under: grant) {
            if canEnd { wake() }
            throw grants.refusal("created \(entry.created), \(reason)")
        }
        return grant
    }
}
