import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Synchronization

/// Sessions as a server runs them: in memory for its gates, their routes, and what time does to them.
final class SessionService: Sendable {
    let live: LiveSessions
    let life: SessionLife
    let bearers: BearerSessions
    private let log: EventLog?
    private let clock: any TimeSource
    /// One turn at a time: a slow disk must not pile them up.
    private let isTurning = Atomic(false)

    /// Reads every session. `reader` is a connection of its own.
    init(
        _ deployment: Deployment, _ keys: LiveKeys, reader: any Store, writer: any StoreWriter, replay: ReplayFile,
        log: EventLog?, clock: any TimeSource = SystemTime()
    ) throws(Fault) {
        live = try LiveSessions(deployment, keys, reader: reader, writer: writer)
        life = SessionLife(deployment, live, writer: writer, replay: replay)
        bearers = try BearerSessions(deployment, live, writer)
        self.log = log
        self.clock = clock
    }

    var routes: [Route] { TokenRoutes(sessions: life, bearers: bearers).routes + SessionRoutes(sessions: life).routes }

    /// For the main thread's timer.
    func turn() throws(Fault) {
        try live.reconcile()
        guard !isTurning.exchange(true, ordering: .acquiring) else { return }
        Task.detached { [self] in
            do throws(Refusal) {
                try await life.upkeep(at: clock.now)
            } catch {
                log?.note("sessions", error.detail)
            }
            isTurning.store(false, ordering: .releasing)
        }
    }
}

extension SessionService {
    /// The session of a proved login, and the answer to the finish, which its key signs.
    nonisolated(nonsending) func open(
        _ proved: ProvedLogin, for call: RouteCall, of release: ReleaseKey
    ) async throws(Refusal) -> RouteAnswer {
        let opened = try await life.open(proved, from: release, at: call.now)
        return RouteAnswer(
            [
                "account": .string(proved.account.name.description), "session": .string(opened.token.id.description),
                "token": .string(opened.token.description), "epoch": .integer(Int64(opened.token.epoch)),
                "expires": .integer(opened.expires), "idle": .integer(opened.idleEnd),
                "slots": .string(opened.slots.description),
            ], signer: opened.signer)
    }
}
