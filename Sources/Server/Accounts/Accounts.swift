import CountersignAuthority
import CountersignGate
import CountersignWire
import Glibc

/// Sign-up, login and password as a server runs them: their routes, and the threads and files behind those.
final class Accounts {
    let services: AccountServices
    private let keeper: LimitKeeper

    /// Starts the threads that compute, and computes one slow hash.
    init(
        _ settings: LoginSettings, _ deployment: Deployment, _ sessions: SessionService, writer: any StoreWriter,
        replay: ReplayFile, sharing limits: FileDescriptor? = nil, handOver: HandOver = HandOver(), log: EventLog?,
        clock: any TimeSource = SystemTime()
    ) throws(Fault) {
        #if SABOTAGE
            let settings = Sabotage.settings(settings)
        #endif
        let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        let keys = try AccountKeys(deployment)
        let pending = PendingLogins(capacity: settings.pending)
        keeper = try LimitKeeper(
            deployment.folder, settings.rules, sharing: limits, pending: pending, log: log, clock: clock)
        services = AccountServices(
            login: Login(keys, reading: sessions.life.reader, pending: pending),
            signUps: Registration(keys, for: .signUp), passwordChanges: Registration(keys, for: .passwordChange),
            enrolment: Enrolment(sessions.life), limits: keeper.limits,
            steps: try HashingPool(.init(workers: cores, queue: settings.queue, patience: 5_000)),
            passwords: try HashingPool(
                .init(workers: settings.hashes ?? max(1, cores / 2), queue: settings.hashQueue)),
            replay: replay, handOver: handOver, sessions: sessions, bearers: sessions.bearers,
            ladder: Ladder(
                apps: try LegacyApps(deployment),
                signIn: try LegacySignIn(keys, reader: sessions.life.reader)),
            keys: sessions.live.keys)
    }

    var routes: [Route] {
        RegistrationRoutes(services: services).routes + LoginRoutes(services: services).routes
            + PasswordLoginRoute(services: services).routes + PasswordRoutes(services: services).routes
    }

    func start() throws(Fault) { try keeper.start() }

    /// After the loops have ended.
    func stop() {
        services.steps.stop()
        services.passwords.stop()
        keeper.stop()
    }
}
