import CountersignAuthority
import CountersignGate
import CountersignWire
import Glibc

/// Sign-up, login and password as a server runs them: their routes, and the threads and files behind those.
final class Accounts {
    let services: AccountServices
    private let keeper: LimitKeeper

    /// `reader` is a connection of its own. Starts the threads that compute.
    init(
        _ settings: LoginSettings, _ deployment: Deployment, reader: any Store, writer: any StoreWriter,
        replay: ReplayFile, sessions: any SessionOpening, log: EventLog?, clock: any TimeSource = SystemTime()
    ) throws(Fault) {
        let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        let keys = try AccountKeys(deployment)
        let pending = PendingLogins(capacity: settings.pending)
        keeper = try LimitKeeper(deployment.folder, settings.rules, pending: pending, log: log, clock: clock)
        services = AccountServices(
            deployment: deployment, login: Login(keys, reading: reader, pending: pending),
            signUps: Registration(keys, for: .signUp), passwordChanges: Registration(keys, for: .passwordChange),
            enrolment: Enrolment(deployment, writer), limits: keeper.limits, reader: reader,
            steps: try HashingPool(.init(workers: cores, queue: settings.queue)),
            passwords: try HashingPool(
                .init(workers: settings.hashes ?? max(1, cores / 2), queue: settings.hashQueue)),
            replay: replay, sessions: sessions)
    }

    var routes: [Route] {
        RegistrationRoutes(services: services).routes + LoginRoutes(services: services).routes
            + PasswordRoutes(services: services).routes
    }

    func start() throws(Fault) { try keeper.start() }

    /// After the loops have ended.
    func stop() {
        services.steps.stop()
        services.passwords.stop()
        keeper.stop()
    }
}
