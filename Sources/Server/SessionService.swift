import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Synchronization

/// Sessions as a server runs them: in memory for the gates, their routes, and their periodic maintenance.
final class SessionService: Sendable {
    let live: SessionDirectory
    let life: SessionLifecycle
    let bearers: BearerSessions
    private let log: EventLog?
    private let clock: any TimeSource
    /// Only one maintenance turn runs at a time, so that turns do not pile up on a slow disk.
    private let isMaintenanceRunning = Atomic(false)

    /// Reads every session. `reader` is a store connection of its own.
    init(
        deployment: Deployment, keys: ReleaseKeyDirectory, reader: any Store, writer: any StoreWriter,
        replay: any ReplayGuard, lease: NodeLease? = nil,
        log: EventLog?, clock: any TimeSource = SystemTime()
    ) throws(OperationalError) {
        live = try SessionDirectory(deployment, keys: keys, reader: reader, writer: writer, lease: lease)
        life = SessionLifecycle(deployment, directory: live, writer: writer, replay: replay)
        bearers = try BearerSessions(deployment, directory: live, writer: writer)
        self.log = log
        self.clock = clock
    }

    var routes: [Route] {
        TokenRoutes(sessions: life, bearers: bearers).routes + SessionRoutes(sessions: life).routes
    }

    /// Call from the main thread's timer.
    func runMaintenance() throws(OperationalError) {
        try live.reconcile()
        guard !isMaintenanceRunning.exchange(true, ordering: .acquiring) else { return }
        Task.detached { [self] in
            do throws(Refusal) {
                try await life.performMaintenance(at: clock.now)
            } catch {
                log?.note(subject: "sessions", message: error.detail)
            }
            isMaintenanceRunning.store(false, ordering: .releasing)
        }
    }
}

extension SessionService {
    /// Opens the session of a verified login, and makes the answer to the finish, which the session's key
    /// signs.
    func open(
        _ proved: VerifiedLogin, for call: RouteCall, of release: AppRelease
    ) async throws(Refusal) -> RouteResult {
        let opened = try await life.open(proved, from: release, at: call.now)
        return RouteResult(
            [
                "account": .string(proved.account.name.description),
                "session": .string(opened.token.id.description),
                "token": .string(opened.token.description), "epoch": .integer(Int64(opened.token.epoch)),
                "expires": .integer(opened.expires), "idle": .integer(opened.idleEnd),
                "slots": .string(opened.slots.description),
            ], signer: opened.signer)
    }
}
