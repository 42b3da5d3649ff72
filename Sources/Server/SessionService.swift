import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire
import Synchronization

/// The sessions as one event loop reads them.
package struct LoopSessions {
    package let directory: SessionDirectory
    package let source: any SessionSource
    /// Those of `source`; nil if the store is a file, which the loop reads itself.
    package let lookups: (any DeferredLookups)?
}

/// Sessions as a server runs them: in memory for the gates, their routes, and their periodic maintenance.
final class SessionService: Sendable {
    let live: SessionDirectory
    let life: SessionLifecycle
    let bearers: BearerSessions
    private let threads: StoreReadThreads
    private let log: EventLog?
    /// Only one maintenance turn runs at a time, so that turns do not pile up on a slow disk.
    private let isMaintenanceRunning = Atomic(false)

    /// `isRemote` says whether a read of the store may wait for a server.
    init(
        _ live: SessionDirectory, deployment: Deployment, writer: any StoreWriter, replay: any ReplayGuard,
        isRemote: Bool = false, log: EventLog?
    ) throws(OperationalError) {
        self.live = live
        threads = StoreReadThreads(
            isRemote ? try WorkPool(SessionService.readBounds, for: .storeReads) : nil)
        life = SessionLifecycle(
            deployment, directory: live, writer: writer, replay: replay, reading: threads)
        bearers = try BearerSessions(deployment, directory: live, writer: writer, reading: threads)
        self.log = log
    }

    /// As many threads as the store has connections for its readers.
    private static let readBounds = WorkPool.Bounds(workers: 4, queue: 4_096)

    /// The sessions for one more event loop.
    func makeLoopSessions() -> LoopSessions {
        guard let pool = threads.pool else {
            return LoopSessions(directory: live, source: live, lookups: nil)
        }
        let source = LoopSessionSource(live, reading: pool)
        return LoopSessions(directory: live, source: source, lookups: source)
    }

    /// Call after the loops have ended.
    func stop() { threads.pool?.stop() }

    var routes: [Route] {
        TokenRoutes(sessions: life, bearers: bearers).routes + SessionRoutes(sessions: life).routes
    }

    /// Call from the main thread's timer. Nothing is deleted without `now`.
    func runMaintenance(at now: TrustedTime?) throws(OperationalError) {
        try live.reconcile()
        guard let now else { return }
        guard !isMaintenanceRunning.exchange(true, ordering: .acquiring) else { return }
        Task.detached { [self] in
            do throws(Refusal) {
                try await life.performMaintenance(at: now)
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
