import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire
import Glibc

/// The authority and gateway as one process.
public enum Server {
    /// How a server begins.
    package enum Start: Sendable {
        case alone
        /// With the sockets and the state of the one that runs on the data folder, if one does.
        case takingOver
    }

    /// Milliseconds between two looks at the store for changes that no counter told of.
    private static let reconcileMilliseconds = 2_000

    /// Serves until told to stop; returns once drained. Call from the main thread, which takes the signals.
    package static func run(
        _ configuration: Configuration, start: Start = .alone, environment: [String: String]
    ) throws(Fault) {
        Signals.block()
        _ = ServerProgram.path
        let deployment = try configuration.openDeployment(absence: .makesOne, environment: environment)
        defer { deployment.store.close() }
        let log = try EventLog(configuration.log, sampling: configuration.logSampling)
        if let warning = deployment.folder.closeToOthers() { Service.warn(warning, about: "data", in: log) }
        let handOver = HandOver()
        var inheritance: Inheritance?
        if case .takingOver = start { inheritance = try Inheritance.ask(deployment.folder, log: log) }
        // Before anything is read: what the other process changes from here on, it tells of.
        if inheritance != nil { handOver.begin() }
        let keys = try LiveKeys(deployment)
        #if SABOTAGE
            try Sabotage.forgetReplays(deployment)
        #endif
        let replays = try ReplayService(deployment, keys: keys, log: log, sharing: inheritance?.replay)
        let replay = replays.file
        let signing = try AnswerSigning(deployment)
        let readiness = Readiness()
        let storeReadiness = StoreReadiness(readiness)
        let writer = try GroupWriter(
            configuration.openStore(), note: { log?.note("store", $0) }, didFail: { storeReadiness.writerDidFail() })
        let tellingWriter = SharedWriter(writer: writer, generation: deployment.generation, handOver: handOver)
        let once = Once(deployment, writer, configuration.once, handOver: handOver)
        let meter = Meter()
        let assertionKeys = try AssertionKeys(deployment)
        let sessions = try SessionService(
            deployment, keys, reader: configuration.openStore(), writer: tellingWriter, replay: replay, log: log)
        let accounts = try Accounts(
            configuration.logins, deployment, sessions, writer: tellingWriter, replay: replay,
            sharing: inheritance?.limits, handOver: handOver, log: log)
        let routes = RouteTable(
            prefix: configuration.prefix,
            Route.open(assertionKeys) + [.time(signedBy: signing.authority), .pins(PinShelf(deployment))]
                + sessions.routes + UploadRoutes(sessions.life, configuration).routes + accounts.routes,
            legacy: LegacyRoutes(services: accounts.services), texts: keys)
        let failures = PublicKeyFailures()
        let service = try Service(
            configuration, log: log, signing: signing, meter: meter, replay: replay,
            adminToken: deployment.folder.adminToken, decideSecret: deployment.folder.decideSecret,
            assertionKeys: assertionKeys, once: once,
            routes: routes, readiness: readiness, sockets: ListeningSockets(inheritance)
        ) { authorities in
            #if SABOTAGE
                if Sabotage.isAnyOn { return Sabotage.gate(Authorities(authorities), keys, sessions.live, replay) }
            #endif
            return Gate(
                authorities: Authorities(authorities), keys: keys, sessions: sessions.live, replay: replay,
                failures: failures, clock: SystemTime())
        }
        let meterStore = configuration.openStore()
        defer { meterStore.close() }
        let meterWriter = MeterWriter(MeterLedger(meter, meterStore), log: log, clock: SystemTime())
        try rememberWhenCountingBegan(deployment.store)
        try meterWriter.start()
        try accounts.start()
        try service.start()
        announce(service)
        let relations = ServerRelations(
            handOver, service, replay, accounts.services.limits, sessions.live, readiness, log)
        try relations.begin(in: deployment.folder, after: inheritance)

        var observed = ObservedApps(keys, log)
        observed.tell(at: SystemTime().now)
        var turn = Turn(milliseconds: reconcileMilliseconds)
        while !relations.isOver(deadline: configuration.deadlines.drain) {
            switch Signals.next(milliseconds: turn.patience(isShort: handOver.hasHandedOver)) {
            case .drain: relations.endInOrder()
            case .reload: attempt("reload", log: log) { () throws(Fault) in try service.reload() }
            case .none: break
            }
            guard turn.isDue(isShort: handOver.hasHandedOver) else { continue }
            log?.closeSample(now: EventLoop.monotonicSeconds())
            once.expire()
            once.forget(at: SystemTime().now)
            let fault = attempt("reconcile", log: log) { () throws(Fault) in try keys.reconcile() }
            observed.tell(at: SystemTime().now)
            storeReadiness.turn(reading: fault) { () throws(Fault) in
                try deployment.store.set(.writeCheck, to: Array(String(SystemTime().now).utf8))
            }
            attempt("sessions", log: log) { () throws(Fault) in try sessions.turn() }
            attempt("replay", log: log) { () throws(Fault) in try replays.turn(at: SystemTime().now) }
        }
        readiness.beginDraining()
        if handOver.hasHandedOver { service.stop() } else { service.drain() }
        accounts.stop()
        writer.stop()
        // Only now is all that this process did in the store, where a successor looks once this end of their
        // connection closes.
        relations.end()
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
    private static func attempt(_ what: String, log: EventLog?, body: () throws(Fault) -> Void) -> Fault? {
        do throws(Fault) {
            try body()
            return nil
        } catch {
            log?.note(what, error.message)
            return error
        }
    }
}
