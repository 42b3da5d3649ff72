import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire
import Glibc

/// The authority and gateway as one process.
public enum Server {
    /// Milliseconds between two looks at the store for changes that no counter told of.
    private static let reconcileMilliseconds = 2_000

    /// Serves until told to stop; returns once drained. Call from the main thread, which takes the signals.
    package static func run(_ configuration: Configuration, environment: [String: String]) throws(Fault) {
        Signals.block()
        let deployment = try configuration.openDeployment(absence: .makesOne, environment: environment)
        defer { deployment.store.close() }
        let keys = try LiveKeys(deployment)
        let log = try EventLog(configuration.log, sampling: configuration.logSampling)
        #if SABOTAGE
            try Sabotage.forgetReplays(deployment)
        #endif
        let replays = try ReplayService(deployment, keys, log: log)
        let replay = replays.file
        let signing = try AnswerSigning(deployment)
        let readiness = Readiness()
        let storeReadiness = StoreReadiness(readiness)
        let writer = try GroupWriter(
            configuration.openStore(), note: { log?.note("store", $0) }, didFail: { storeReadiness.writerDidFail() })
        let once = Once(deployment, writer, configuration.once)
        let meter = Meter()
        let assertionKeys = try AssertionKeys(deployment)
        let sessions = try SessionService(
            deployment, keys, reader: configuration.openStore(), writer: writer, replay: replay, log: log)
        let accounts = try Accounts(
            configuration.logins, deployment, sessions, writer: writer, replay: replay, log: log)
        let routes = RouteTable(
            prefix: configuration.prefix,
            Route.open(assertionKeys) + [.time(signedBy: signing.authority), .pins(PinShelf(deployment))]
                + sessions.routes + accounts.routes,
            legacy: LegacyRoutes(services: accounts.services))
        let service = try Service(
            configuration, log: log, signing: signing, meter: meter, replay: replay,
            adminToken: deployment.folder.adminToken, assertionKeys: assertionKeys, once: once,
            routes: routes, readiness: readiness
        ) { authorities in
            #if SABOTAGE
                if Sabotage.isAnyOn { return Sabotage.gate(Authorities(authorities), keys, sessions.live, replay) }
            #endif
            return Gate(
                authorities: Authorities(authorities), keys: keys, sessions: sessions.live, replay: replay,
                clock: SystemTime())
        }
        let meterStore = configuration.openStore()
        defer { meterStore.close() }
        let meterWriter = MeterWriter(MeterLedger(meter, meterStore), log: log, clock: SystemTime())
        try rememberWhenCountingBegan(deployment.store)
        try meterWriter.start()
        try accounts.start()
        try service.start()
        announce(service)

        var isServing = true
        while isServing {
            switch Signals.next(milliseconds: reconcileMilliseconds) {
            case .drain:
                readiness.beginDraining()
                isServing = false
            case .reload: attempt(log, "reload") { () throws(Fault) in try service.reload() }
            case .none: break
            }
            log?.closeSample(now: EventLoop.monotonicSeconds())
            once.expire()
            once.forget(at: SystemTime().now)
            let fault = attempt(log, "reconcile") { () throws(Fault) in try keys.reconcile() }
            storeReadiness.turn(reading: fault) { () throws(Fault) in
                try deployment.store.set(.writeCheck, to: Array(String(SystemTime().now).utf8))
            }
            attempt(log, "sessions") { () throws(Fault) in try sessions.turn() }
            attempt(log, "replay") { () throws(Fault) in try replays.turn(at: SystemTime().now) }
        }
        service.drain()
        accounts.stop()
        writer.stop()
        meterWriter.stop()
        log?.stop()
    }

    /// So that a scheme that nobody has used is said to be unused since a day, and not since ever.
    private static func rememberWhenCountingBegan(_ store: any Store) throws(Fault) {
        guard try store.value(of: .meterBegan) == nil else { return }
        _ = try store.claim(.meterBegan, Array(String(SystemTime().now).utf8))
    }

    private static func announce(_ service: Service) {
        var text = "listening on \(service.url)\n"
        if let pin = service.spkiPin { text += "spki_pin \(pin)\n" }
        print(text, terminator: "")
        fflush(nil)
    }

    /// What fails while serving is logged, and tried again at the next turn; requests fail closed meanwhile.
    @discardableResult
    private static func attempt(_ log: EventLog?, _ what: String, _ body: () throws(Fault) -> Void) -> Fault? {
        do throws(Fault) {
            try body()
            return nil
        } catch {
            log?.note(what, error.message)
            return error
        }
    }
}
