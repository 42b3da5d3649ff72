import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignMemory
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Synchronization

/// The replay guard of several nodes in the PostgreSQL database that they share: an admitted request is a
/// durable row. Source: docs/decisions/0073-postgresql-replay-guard.md.
///
/// The insertions of a loop are sent together over its connection. Without the database a request is refused;
/// nothing falls back to memory.
package final class PostgreSQLReplayGuard: SharedReplayGuard {
    private let hash: PostgreSQLEntryHash
    private let grants: ReplayGrants<PostgreSQLReplayGrant>
    private let retention: Locked<ReplayRetention>
    private let controller: PostgreSQLReplayController
    /// Creation times that an operator's confirmation of the clock refuses.
    private let refused: TimeIntervals
    private let clock: any TimeSource
    private let clients = ReplayLoopClients<PostgreSQLLoopClient>()

    package var kind: SharedReplayKind { .postgreSQL }

    /// `store` is in the database at `address`, over a connection that no other part uses. `secret` is the
    /// deployment's own. `formerFloor` tells up to where a replay file may have admitted signatures, and
    /// `refused` which others are refused. `note` gets one line whenever the state changes.
    package init(
        _ address: PostgreSQLAddress, secret: Secret, store: any Store, retention: ReplayRetention,
        refused: TimeIntervals = TimeIntervals(), formerFloor: @escaping @Sendable () -> Int64 = { 0 },
        patience: Int = SharedReplayKind.patience, clock: any TimeSource = SystemTime(),
        note: @escaping @Sendable (String) -> Void
    ) throws(OperationalError) {
        grants = ReplayGrants(of: .postgreSQL, patience: patience)
        (self.refused, self.clock) = (refused, clock)
        hash = PostgreSQLEntryHash(secret)
        self.retention = Locked(retention)
        controller = PostgreSQLReplayController(
            address, store: store, record: ReplayEpochRecord(store, of: .postgreSQL, secret: secret),
            grants: grants, clients: clients, retention: self.retention, formerFloor: formerFloor,
            clock: clock, note: note)
    }

    package func start() throws(OperationalError) {
        try controller.start()
        try grants.waitForFirstGrant()
    }

    package func attach(to loop: EventLoop) {
        clients.add(PostgreSQLLoopClient(on: loop, grants: grants) { [controller] in controller.wake() })
        controller.wake()
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
        let grant = grants.grant
        return SharedReplayUsage(
            epoch: grant?.epoch.number ?? 0, floor: grant?.epoch.floor ?? 0,
            refusals: grants.refusals.load(ordering: .relaxed), failure: grants.failure ?? clients.failure)
    }

    package func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool {
        _ = try admissible(entry, now: clock.now)
        return false
    }

    package func insert(_ entry: ReplayEntry) async throws(Refusal) {
        // Not the entry's time: a request's body may have taken long to arrive.
        let now = clock.now
        let grant = try admissible(entry, now: now)
        let outcome = await clients.insert(.init(name: hash.name(of: entry), now: now, grant: grant))
        try grants.admit(entry, after: outcome)
    }

    /// Always passes: only an insertion decides, and a look-up would be a round trip.
    package func lookUp(_ entry: ReplayEntry) throws(Refusal) {}

    /// The grant under which the entry may be inserted. A minute without a table is refused: it was dropped,
    /// or is yet to be made.
    private func admissible(_ entry: ReplayEntry, now: Int64) throws(Refusal) -> PostgreSQLReplayGrant {
        let grant = try grants.current(for: entry, now: now, refusing: refused)
        let minute = PostgreSQLEntryName.minute(of: entry.created)
        guard grant.minutes.contains(minute) else {
            if entry.created + retention.with({ $0.seconds }) > now { controller.want(minute) }
            throw grants.refusal("created \(entry.created), and there is no table of that minute")
        }
        return grant
    }
}
