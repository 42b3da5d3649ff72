import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignMemory
import CountersignSQL
import CountersignSeal
import CountersignWire

/// Entries as rows, in a table for each minute of creation times: makes and drops the tables, and opens the
/// loops' connections.
///
/// Each look opens a new connection. A node whose connections end at a replaced primary thereby sees the
/// other timeline and closes them.
///
/// Safe to share: only the guard's own loop uses the variables, apart from those under a lock.
final class PostgreSQLReplayBackend: SharedReplayBackend, @unchecked Sendable {
    typealias Client = PostgreSQLLoopClient
    typealias Server = (ReplayEntryDatabase, ReplayEntryView)

    static let kind = SharedReplayKind.postgreSQL
    static let pauses = (least: 100, most: 1_000, retry: 1_000)

    private static let mostWanted = 256
    /// Tables that are made at one look, which takes a quarter of a second on a busy machine.
    private static let mostMade = 64
    /// Seconds either side of now for which tables are made before a request asks for them.
    private static let mostWindow: Int64 = 3_600

    let settings: SharedReplaySettings
    let record: ReplayEpochRecord
    private let address: PostgreSQLAddress
    private let store: any Store
    private let hash: KeyedHash
    /// Minutes without a table that requests asked for.
    private let wanted = Locked<Set<Int64>>([])

    // Confined to the guard's own loop.
    /// What the last look found.
    private var last: (source: ReplayDataSet, flushed: Int64)?
    /// Minutes around now whose tables were dropped already.
    private var unmade: Set<Int64> = []

    init(_ address: PostgreSQLAddress, store: any Store, settings: SharedReplaySettings) {
        (self.address, self.store, self.settings) = (address, store, settings)
        record = ReplayEpochRecord(store, of: .postgreSQL, secret: settings.secret)
        hash = KeyedHash(settings.secret, for: "postgres replay entries")
    }

    func client(
        on loop: EventLoop, grants: ReplayGrants<PostgreSQLReplayGrant>,
        suspect: @escaping @Sendable () -> Void
    ) -> PostgreSQLLoopClient {
        PostgreSQLLoopClient(on: loop, grants: grants, suspect: suspect)
    }

    /// A minute without a table is refused: it was dropped, or is yet to be made.
    func obstacle(
        to entry: ReplayEntry, now: Int64, under grant: PostgreSQLReplayGrant
    ) -> (reason: String, canEnd: Bool)? {
        let minute = PostgreSQLEntryName.minute(of: entry.created)
        if grant.minutes.contains(minute) { return nil }
        let canEnd = entry.created + settings.retention.with { $0.seconds } > now
        if canEnd {
            wanted.with { if $0.count < PostgreSQLReplayBackend.mostWanted { $0.insert(minute) } }
        }
        return ("and there is no table of that minute", canEnd)
    }

    func insertion(
        of entry: ReplayEntry, now: Int64, under grant: PostgreSQLReplayGrant
    ) -> PostgreSQLLoopClient.Insertion {
        .init(name: PostgreSQLEntryName(entry, by: hash), now: now, grant: grant)
    }

    // MARK: Connections

    /// Opens the connections that loops want, and drops the tables that no request needs.
    func finish(
        _ grant: PostgreSQLReplayGrant, for clients: [PostgreSQLLoopClient], in look: Look
    ) throws(OperationalError) {
        let (database, view) = look.server
        for client in clients where client.wantsConnection {
            let connection = try ReplayEntryConnection(to: address)
            guard connection.source == view.source else {
                throw failure("connections reach more than one server")
            }
            client.take(connection)
        }
        let expired = view.minutes.subtracting(grant.minutes)
        if !expired.isEmpty { try database.drop(expired.sorted()) }
    }

    func failure(_ text: String) -> OperationalError {
        OperationalError(.unreachable, message: "\(address.name): \(text)")
    }

    /// A connection that cannot be opened does not end those that are.
    func holdsGrant(after error: OperationalError) -> Bool { error.kind == .unreachable }

    // MARK: Minutes

    func grant(for epoch: ReplayEpoch, in look: Look) throws(OperationalError) -> PostgreSQLReplayGrant {
        let (database, view) = look.server
        last = (view.source, view.flushed)
        let now = settings.clock.now
        // A table that is dropped too early costs refusals, and admits nothing.
        let first = now - ReplayEpoch.slack - settings.retention.with { $0.seconds }
        let minutes = try completed(view.minutes, in: database, at: now)
        return PostgreSQLReplayGrant(epoch: epoch, minutes: minutes.filter { ($0 + 1) * 60 >= first })
    }

    /// The minutes that have a table after those are made that are needed around `now`, and those that
    /// requests asked for.
    private func completed(
        _ minutes: Set<Int64>, in database: ReplayEntryDatabase, at now: Int64
    ) throws(OperationalError) -> Set<Int64> {
        guard (0...Int64(UInt32.max)).contains(now) else { return minutes }
        let wanted = wanted.with { wanted in
            defer { wanted = [] }
            return wanted
        }
        let minute = PostgreSQLEntryName.minute(of:)
        // Those of a wider window are made when a request asks for them.
        let window = min(settings.retention.with { $0.window }, PostgreSQLReplayBackend.mostWindow)
        let around = minute(max(now - window - 60, 0))...minute(now + window + 180)
        let missing = wanted.union(around).subtracting(minutes).subtracting(unmade).sorted {
            abs($0 - minute(now)) < abs($1 - minute(now))
        }
        guard !missing.isEmpty else { return minutes }
        let most = missing.prefix(PostgreSQLReplayBackend.mostMade)
        try database.make(Array(most))
        let found = try database.minutes()
        // Those that were dropped before are never made again.
        unmade = unmade.filter { $0 >= around.lowerBound }.union(most.filter { !found.contains($0) })
        return found
    }

    // MARK: Epochs

    func look(
        on loop: EventLoop, isSuspected: Bool
    ) throws(OperationalError) -> ReplayLook<Server> {
        let began = EventLoop.monotonicSeconds()
        let database = try ReplayEntryDatabase(to: address)
        let view = try database.view()
        try SharedReplayKind.postgreSQL.check(clock: view.time, now: settings.clock.now)
        return ReplayLook(
            server: (database, view), title: "PostgreSQL", identity: view.source,
            epoch: try record.current(inMark: view.mark, value: view.record), began: began)
    }

    func loss(
        of epoch: ReplayEpoch, in look: Look, known: ReplayEpoch?
    ) throws(OperationalError) -> ReplayLoss? {
        let (_, view) = look.server
        guard known.map({ $0.number <= epoch.number }) ?? true else {
            throw failure("the record of the epoch is an earlier one")
        }
        guard epoch.identity == look.identity else {
            return ReplayLoss(reason: "a standby was promoted, or the database was restored")
        }
        if let last, last.source == view.source, view.flushed < last.flushed {
            return ReplayLoss(reason: "the database was set back")
        }
        guard view.token != epoch.token else { return nil }
        return ReplayLoss(reason: "the tables of requests were replaced", isOfMarks: true)
    }

    /// The record is changed where new connections end.
    func prepareChange(beginsEpoch: Bool, in look: Look) { store.close() }

    func mark(_ epoch: ReplayEpoch, in look: Look) throws(OperationalError) {
        try look.server.0.adopt(epoch.token, of: record.sealed(epoch))
        last = nil
    }

    /// Tables are dropped by the retention of that time, not by the one in which their entries came.
    func widened(_ epoch: ReplayEpoch, to need: ReplayRetention, now: Int64) -> ReplayEpoch {
        epoch.covering(need)
    }
}
