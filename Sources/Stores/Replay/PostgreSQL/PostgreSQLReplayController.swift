import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignMemory
import CountersignSQL
import CountersignThreads
import CountersignWire

/// Watches the database and the epoch, on a thread of its own: finds losses, begins epochs, makes and drops
/// the tables, opens the loops' connections, and publishes the grant under which they insert.
///
/// Each look opens a new connection. A node whose connections end at a primary that was replaced finds the
/// other timeline by that, and gives them up.
final class PostgreSQLReplayController: @unchecked Sendable {
    private static let checkMilliseconds = 1_000
    /// Between two looks at least, however often the controller is woken.
    private static let pauseMilliseconds = 100
    private static let mostWanted = 256
    /// Tables that are made at one look, which takes a quarter of a second on a busy machine.
    private static let mostMade = 64
    /// Seconds either side of now for which tables are made before a request asks for them.
    private static let mostWindow: Int64 = 3_600
    /// How long another node has for marking the tables with an epoch that it began, in nanoseconds.
    private static let markerPatience: Int64 = 1_000_000_000

    private struct Turn {
        var isStopping = false
        var isWoken = false
        /// Minutes without a table that requests asked for.
        var wanted: Set<Int64> = []
    }

    private let address: PostgreSQLAddress
    private let store: any Store
    private let record: ReplayEpochRecord
    private let grants: ReplayGrants<PostgreSQLReplayGrant>
    private let clients: ReplayLoopClients<PostgreSQLLoopClient>
    private let retention: Locked<ReplayRetention>
    /// The floor of the guard that the deployment had before.
    private let formerFloor: @Sendable () -> Int64
    private let clock: any TimeSource
    private let note: @Sendable (String) -> Void
    private let turn = Monitor(Turn())
    private var thread: WorkerThreads?
    private var reported: String?
    /// The last epoch that was found or begun. Confined to the thread, as the one below is.
    private var known: ReplayEpoch?
    /// What the last look found.
    private var last: (source: ReplayEntrySource, flushed: Int64)?

    init(
        _ address: PostgreSQLAddress, store: any Store, record: ReplayEpochRecord,
        grants: ReplayGrants<PostgreSQLReplayGrant>, clients: ReplayLoopClients<PostgreSQLLoopClient>,
        retention: Locked<ReplayRetention>, formerFloor: @escaping @Sendable () -> Int64,
        clock: any TimeSource, note: @escaping @Sendable (String) -> Void
    ) {
        self.address = address
        self.store = store
        self.record = record
        self.grants = grants
        self.clients = clients
        self.retention = retention
        self.formerFloor = formerFloor
        self.clock = clock
        self.note = note
    }

    func start() throws(OperationalError) {
        thread = try WorkerThreads(purpose: "for the replay guard") { [self] in run() }
    }

    /// Looks now. Thread-safe.
    func wake() {
        turn.with { $0.isWoken = true }
        turn.wakeAll()
    }

    /// Has the table of that minute made, if there was none yet. Thread-safe.
    func want(_ minute: Int64) {
        turn.with { turn in
            if turn.wanted.count < PostgreSQLReplayController.mostWanted { turn.wanted.insert(minute) }
        }
        wake()
    }

    func stop() {
        turn.with { $0.isStopping = true }
        turn.wakeAll()
        thread?.join()
    }

    private func run() {
        while !turn.with({ $0.isStopping }) {
            do throws(OperationalError) {
                try look()
            } catch {
                // A connection that cannot be opened does not end those that are: the last grant holds until
                // its lease ends.
                if error.kind != .unreachable || grants.grant == nil { grants.revoke(because: error) }
                report("unavailable: \(error.message)")
            }
            pause(milliseconds: PostgreSQLReplayController.pauseMilliseconds) { $0.isStopping }
            pause(milliseconds: PostgreSQLReplayController.checkMilliseconds) { $0.isStopping || $0.isWoken }
            turn.with { $0.isWoken = false }
        }
    }

    private func pause(milliseconds: Int, until condition: (Turn) -> Bool) {
        _ = turn.wait(milliseconds: milliseconds) { condition($0) ? true : nil }
    }

    private func report(_ text: String) {
        guard text != reported else { return }
        reported = text
        note(text)
    }

    private func look() throws(OperationalError) {
        let confirmed = EventLoop.monotonicSeconds()
        let database = try ReplayEntryDatabase(to: address)
        let (epoch, view) = try settledEpoch(in: database)
        last = (view.source, view.flushed)
        let now = clock.now
        let need = retention.with { $0 }
        let expired = expiredMinutes(among: view.minutes, at: now, need: need)
        let minutes = try completed(view.minutes, in: database, at: now, need: need).subtracting(expired)
        let isNew = grants.grant.map { $0.epoch != epoch } ?? true
        grants.publish(PostgreSQLReplayGrant(epoch: epoch, minutes: minutes), confirmed: confirmed)
        if isNew { clients.prepareAll() }
        for client in clients.all where client.wantsConnection {
            let connection = try ReplayEntryConnection(to: address)
            guard connection.source == view.source else {
                throw unreachable("connections reach more than one server")
            }
            client.take(connection)
        }
        report("PostgreSQL is in use, epoch \(epoch.number)")
        if !expired.isEmpty { try database.drop(expired.sorted()) }
    }

    private func unreachable(_ text: String) -> OperationalError {
        OperationalError(.unreachable, message: "\(address.name): \(text)")
    }

    // MARK: Minutes

    /// A table that was dropped too early costs refusals, and admits nothing.
    private func expiredMinutes(
        among minutes: Set<Int64>, at now: Int64, need: ReplayRetention
    ) -> [Int64] {
        minutes.filter { ($0 + 1) * 60 + need.seconds + ReplayEpoch.slack < now }
    }

    /// The minutes that have a table after those are made that are needed around `now`, and those that
    /// requests asked for.
    private func completed(
        _ minutes: Set<Int64>, in database: ReplayEntryDatabase, at now: Int64, need: ReplayRetention
    ) throws(OperationalError) -> Set<Int64> {
        guard (0...Int64(UInt32.max)).contains(now) else { return minutes }
        let wanted = turn.with { turn in
            defer { turn.wanted = [] }
            return turn.wanted
        }
        let minute = PostgreSQLEntryName.minute(of:)
        // Those of a wider window are made when a request asks for them.
        let window = min(need.window, PostgreSQLReplayController.mostWindow)
        let around = minute(max(now - window - 60, 0))...minute(now + window + 180)
        let missing = wanted.union(around).subtracting(minutes).subtracting(unmade).sorted {
            abs($0 - minute(now)) < abs($1 - minute(now))
        }
        guard !missing.isEmpty else { return minutes }
        let most = missing.prefix(PostgreSQLReplayController.mostMade)
        try database.make(Array(most))
        let found = try database.minutes()
        // Those that were dropped before are never made again.
        unmade = unmade.filter { $0 >= around.lowerBound }.union(most.filter { !found.contains($0) })
        return found
    }

    /// Minutes around now whose tables were dropped already.
    private var unmade: Set<Int64> = []

    // MARK: Epochs

    /// The deployment's epoch, after what was lost is accounted for, as a new connection finds it. The
    /// store's connections are closed before each change, so that it is made where new ones end.
    private func settledEpoch(
        in database: ReplayEntryDatabase
    ) throws(OperationalError) -> (ReplayEpoch, ReplayEntryView) {
        let end = EventLoop.nanoseconds() + PostgreSQLReplayController.markerPatience
        while true {
            let view = try database.view()
            let isOver = EventLoop.nanoseconds() >= end
            let now = clock.now
            try SharedReplayKind.postgreSQL.check(clock: view.time, now: now)
            if let epoch = try record.current(inMark: view.mark, value: view.record) {
                guard known.map({ $0.number <= epoch.number }) ?? true else {
                    throw unreachable("the record of the epoch is an earlier one")
                }
                guard let reason = loss(of: epoch, in: view, isOver: isOver) else {
                    let need = retention.with { $0 }
                    if view.token == epoch.token, epoch.need.union(need) != epoch.need {
                        store.close()
                        _ = try record.replace(epoch, by: epoch.covering(need))
                        continue
                    }
                    if view.token == epoch.token, epoch.periods.contain(now + ReplayPeriods.renewal) {
                        known = epoch
                        return (epoch, view)
                    }
                    if view.token == epoch.token {
                        store.close()
                        _ = try record.replace(epoch, by: epoch.extended(at: now))
                        continue
                    }
                    // Another node has begun the epoch, and is about to mark the tables.
                    pause(milliseconds: 50) { $0.isStopping }
                    continue
                }
                try begin(afterLossOf: epoch, because: reason, view: view, in: database)
            } else {
                try beginFirst(view: view, in: database)
            }
            guard EventLoop.nanoseconds() < end + PostgreSQLReplayController.markerPatience else {
                throw unreachable("the epoch of the replay guard keeps changing")
            }
        }
    }

    /// Why entries of this epoch may be lost; nil if they are not.
    private func loss(of epoch: ReplayEpoch, in view: ReplayEntryView, isOver: Bool) -> String? {
        guard epoch.identity == ReplayDataSet(view.source) else {
            return "a standby was promoted, or the database was restored"
        }
        if let last, last.source == view.source, view.flushed < last.flushed {
            return "the database was set back"
        }
        // Tables that had the epoch's token have lost it; those of a new epoch get it in a moment.
        guard view.token != epoch.token, isOver || known?.token == epoch.token else { return nil }
        return "the tables of requests were replaced"
    }

    private func begin(
        afterLossOf epoch: ReplayEpoch, because reason: String, view: ReplayEntryView,
        in database: ReplayEntryDatabase
    ) throws(OperationalError) {
        let next = epoch.next(
            for: ReplayDataSet(view.source), need: retention.with { $0 }, now: clock.now)
        store.close()
        guard try record.replace(epoch, by: next) == next else { return }
        try adopt(next, in: database, because: reason)
    }

    private func beginFirst(view: ReplayEntryView, in database: ReplayEntryDatabase) throws(OperationalError)
    {
        guard known == nil else {
            throw OperationalError(
                .failed, message: "another gateway of this deployment uses another replay guard")
        }
        store.close()
        guard
            let begun = try record.begin(
                for: ReplayDataSet(view.source), need: retention.with { $0 }, formerFloor: formerFloor,
                now: clock.now)
        else { return }
        try adopt(begun, in: database, because: "the guard is PostgreSQL from now on")
    }

    private func adopt(
        _ epoch: ReplayEpoch, in database: ReplayEntryDatabase, because reason: String
    ) throws(OperationalError) {
        try database.adopt(epoch.token, of: record.sealed(epoch))
        last = nil
        if epoch.floor > 0 {
            note("\(reason); epoch \(epoch.number): signatures made up to \(epoch.floor) are refused")
        }
    }
}
