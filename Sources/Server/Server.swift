import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignReplay
import CountersignSQL
import CountersignThreads
import CountersignWire
import Glibc

/// The authority and gateway as one process.
public enum Server {
    /// How a server begins.
    package enum Start: Sendable {
        case alone
        /// With the sockets and the state of the server that runs on the data folder, if one does.
        case takingOver
    }

    /// Milliseconds between two looks at the store for changes that the generation did not announce.
    private static let reconcileMilliseconds = 2_000
    /// Requests that may wait for a changed policy to be loaded: more than there are connections.
    private static let releaseLoads = WorkPool.Bounds(workers: 1, queue: 100_000, patience: 10_000)

    /// Serves until told to stop; returns once drained. Call from the main thread, which handles the signals.
    /// A reload reads `sources` again.
    package static func run(
        _ configuration: Configuration, from sources: Configuration.Sources, start: Start = .alone,
        environment: [String: String], services: AdminServices? = nil,
        composition: any ServerComposition = SoundComposition()
    ) throws(OperationalError) {
        Signals.block()
        _ = ServerProgram.path
        let pageCheck = StorePageCheck()
        do throws(OperationalError) {
            try serve(
                composition.configured(configuration), from: sources, start: start, environment: environment,
                services: services,
                composition: composition, checkingStoreBy: pageCheck)
        } catch {
            // A damaged page can fail a reader with any message before the check has found it.
            try pageCheck.requireSound()
            throw error
        }
    }

    private static func serve(
        _ configuration: Configuration, from sources: Configuration.Sources, start: Start,
        environment: [String: String], services: AdminServices?, composition: any ServerComposition,
        checkingStoreBy pageCheck: StorePageCheck
    ) throws(OperationalError) {
        let manager = ServiceManager(environment: environment)
        let passed = try manager.takeSockets(configuration)
        let log = try EventLog(configuration.log, sampling: configuration.logSampling)
        for problem in configuration.exposure { Service.warn(problem.message, about: "settings", in: log) }
        let drills = DrillControl(log: log)
        try KeyedRequestStorage.requireNoLog(
            in: DataFolder(configuration.data, absence: .create), over: configuration.store)
        let clock = TrustedClock()
        let deployment = try configuration.openDeployment(
            inspecting: .concurrent(pageCheck), absence: .create, environment: environment,
            rootSealer: composition.rootSealer,
            acknowledging: .durable, interruptedBy: drills.store, clock: .watched(clock),
            accepting: .latestOfAllNodes)
        defer { deployment.store.close() }
        if let warning = deployment.folder.closeToOthers() { Service.warn(warning, about: "data", in: log) }
        if let backup = deployment.migration.backup {
            Service.warn("the store was migrated; its backup is \(backup)", about: "store", in: log)
        }
        let handOver = HandoverState()
        var inheritance: InheritedResources?
        if case .takingOver = start {
            // The other process serves meanwhile, and is not asked for a store that cannot be used.
            try pageCheck.requireSound()
            inheritance = try InheritedResources.ask(deployment.folder, log: log)
            try inheritance?.requireKeyedRequests(over: configuration.store)
        }
        // Before anything is read: the other process announces all its changes from here on.
        if inheritance != nil { handOver.begin() }
        let rowStore = try configuration.openStore(of: deployment, interruptedBy: drills.store)
        defer { rowStore.close() }
        let rowWatch = RowWatch(deployment, store: rowStore, log: log)
        try rowWatch.verifyBeforeStart()
        let lease = configuration.store.isShared ? NodeLease() : .lasting()
        deployment.head.ends(lease)
        let keys = try ReleaseKeyDirectory(
            deployment, lease: lease, loadingOn: WorkPool(Server.releaseLoads, for: .storeReads))
        let readiness = Readiness()
        let storeReadiness = StoreReadiness(readiness)
        let writer = try GroupWriter(
            configuration.openStore(of: deployment, interruptedBy: drills.store),
            note: { log?.note(subject: "store", message: $0) },
            didFail: { storeReadiness.writerDidFail() })
        let membership = try membership(
            of: configuration, lease: lease, handOver: handOver,
            status: NodeStatus(readiness, log: log), drill: drills.store, clock: clock,
            composition: composition)
        let tellingWriter = NodeStoreWriter(
            writer: HandoverStoreWriter(
                writer: composition.writer(writer), generation: deployment.generation, handOver: handOver),
            membership: membership)
        // Until here nothing is written to the store: from here on, every page is known to be sound.
        let live = try SessionDirectory.load(
            deployment, keys: keys,
            reader: configuration.openStore(of: deployment, interruptedBy: drills.store),
            writer: tellingWriter, lease: lease, beside: pageCheck)
        membership?.terms = NodeTerms(
            settings: configuration.sharedSettings, predecessor: inheritance?.node,
            record: { () throws(OperationalError) in try deployment.sharedSettings() },
            replayGuard: { configuration.nodeReplayGuard.text })
        try membership?.enter()
        var isServing = false
        defer { if !isServing { membership?.stop() } }
        try deployment.adopt(configuration, log: log)
        try composition.prepare(deployment)
        let replays = try ReplayService(
            deployment, keys: keys, location: configuration.replay, database: configuration.store.database,
            log: log, sharing: inheritance?.replay, besides: membership?.ownIDs ?? []
        ) { () throws(OperationalError) in
            try configuration.openStore(of: deployment, interruptedBy: drills.store)
        }
        defer { replays.stop() }
        membership?.terms.replayGuard = { [shared = replays.backend.shared] in
            (shared?.name ?? configuration.nodeReplayGuard).text
        }
        membership?.terms.reclaim = { () throws(OperationalError) in
            try replays.reclaim(at: SystemTime().now)
        }
        try membership?.enter()
        // The guard's server may have kept a later head than the data folder has.
        try deployment.followStore()
        let replay = replays.backend.drilled(by: drills.replay)
        let signing = try ResponseSigner(deployment)
        readiness.watch(.replay) { [shared = replays.backend.shared] in
            drills.replay.isOn
                ? "requests are refused, for `countersign drill replay`" : shared?.usage.failure
        }
        readiness.watchPending(.replay) { [backend = replays.backend] in
            ReplayService.warning(ofFloor: backend.currentFloor, at: SystemTime().now)
        }
        let requests = try KeyedRequestStorage(
            of: deployment, over: configuration.store, writer: writer, readiness: readiness,
            note: { log?.note(subject: "keyed requests", message: $0) })
        let once = IdempotencyCoordinator(
            deployment, store: composition.keyedRequests(requests.store), writer: writer,
            settings: configuration.idempotency, handOver: handOver,
            latestTime: { clock.trustedTime?.seconds })
        let meter = RequestMeter()
        let assertionKeys = try AssertionKeys(deployment)
        let sessions = try SessionService(
            live, deployment: deployment, writer: tellingWriter, replay: replay,
            isRemote: membership != nil, log: log)
        let accounts = try AccountSubsystem(
            settings: composition.loginSettings(configuration.logins), deployment: deployment,
            sessions: sessions, writer: tellingWriter,
            shared: configuration.store.openLogins(
                authenticatingBy: deployment.ownRows, interruptedBy: drills.store), replay: replay,
            sharing: inheritance?.limits,
            handOver: handOver, log: log, clock: clock, composition: composition)
        let running = RunningConfiguration(configuration)
        let routes = RouteTable(
            prefix: configuration.prefix,
            routes: Route.open(assertionKeys) + [
                .time(signedBy: signing, by: clock, stating: configuration.idempotency.retention),
                .pins(PinManifestCache(deployment)),
                .document(below: configuration.prefix),
            ]
                + sessions.routes + UploadRoutes(sessions.life, running: running).routes
                + accounts.routes,
            legacy: LegacyRoutes(services: accounts.services), texts: keys)
        let webhookStore = try configuration.openStore(of: deployment, interruptedBy: drills.store)
        let webhooks = WebhookSender(
            deployment, store: webhookStore, guesses: accounts.services.guesses.accounts
        ) {
            log?.note(subject: "webhooks", message: $0)
        }
        let failures = PublicKeyFailureLimiter()
        let service = try Service(
            running, log: log, signing: signing, meter: meter, writer: writer, replay: replays.backend,
            rows: deployment.rows,
            adminToken: deployment.folder.adminToken, decideSecret: deployment.folder.decideSecret,
            assertionKeys: assertionKeys, once: once, keys: keys,
            guesses: accounts.services.guesses.accounts,
            routes: routes, readiness: readiness, membership: membership, drills: drills,
            webhooks: webhooks,
            sockets: ListeningSockets(inheritance, passed: passed), services: services,
            composition: composition, clock: clock
        ) { authorities in
            composition.gate(
                for: authorities, keys: keys, sessions: sessions.makeLoopSessions(), replay: replay,
                failures: failures, clock: clock)
        }
        let meterStore = try configuration.openStore(of: deployment, interruptedBy: drills.store)
        defer { meterStore.close() }
        let meterWriter = MeterWriter(
            MeterPersistence(meter, store: meterStore), log: log, clock: clock)
        try recordMeterStart(in: deployment.store)
        try meterWriter.start()
        try accounts.start()
        try membership?.start(
            .init(
                deployment: deployment, keys: keys, sessions: sessions.live,
                schema: deployment.store))
        let clockKeeper = try ClockKeeper(
            clock, of: deployment, needsStore: membership != nil, certificateEnd: service.certificateEnd,
            log: log)
        readiness.watch(.clockSet) { ClockKeeper.failure(of: clock) }
        try service.start()
        isServing = true
        try webhooks.start()
        rowWatch.run()
        announce(service)
        let reloader = Reloader(
            sources: sources, running: running, service: service, handOver: handOver, log: log)
        let relations = HandoverCoordinator(
            handOver: handOver, service: service, replay: replays.backend.file,
            limits: accounts.services.limits,
            sessions: sessions.live, requests: requests, readiness: readiness, log: log,
            reloader: reloader, node: membership?.id)
        try relations.begin(in: deployment.folder, after: inheritance)
        manager.tell(.ready(url: service.url, processID: getpid()))
        let watchdog = try manager.startWatchdog { service.loopsHaveResponded() }

        var observed = ObserveModeReporter(keys, log: log)
        observed.logChanges(at: SystemTime().now)
        var turn = MainThreadSchedule(milliseconds: reconcileMilliseconds)
        while !relations.shouldEnd(deadline: running.current.deadlines.drain) {
            switch Signals.next(milliseconds: turn.patience(isShort: relations.isWaitingShortly)) {
            case .drain: relations.endGracefully(after: running.current.drainDelay)
            case .reload: _ = reloader.reload()
            case .none: break
            }
            guard turn.isDue(isShort: relations.isWaitingShortly) else { continue }
            log?.closeSample(now: EventLoop.monotonicSeconds())
            drills.look()
            service.traffic.look(at: SystemTime().now)
            once.expire()
            let sweepTime = clock.sweepTime
            if let sweepTime { once.forget(at: sweepTime) }
            logFailure(of: "master key", log: log) { () throws(OperationalError) in
                try deployment.masterKey.look()
                if membership != nil { try MasterKeyRotation(of: deployment).finishAtNode() }
            }
            let fault = logFailure(of: "reconcile", log: log) { () throws(OperationalError) in
                try keys.reconcile()
            }
            observed.logChanges(at: SystemTime().now)
            storeReadiness.update(readFailure: fault) { () throws(OperationalError) in
                try deployment.store.set(.writeCheck, to: Array(String(SystemTime().now).utf8))
            }
            logFailure(of: "sessions", log: log) { () throws(OperationalError) in
                try sessions.runMaintenance(at: sweepTime)
            }
            logFailure(of: "registration key", log: log) { () throws(OperationalError) in
                if let sweepTime { try accounts.runMaintenance(at: sweepTime) }
            }
            rowWatch.run()
            logFailure(of: "webhooks", log: log) { () throws(OperationalError) in
                try webhooks.runMaintenance(at: clock.trustedTime, sweepingAt: sweepTime)
            }
            logFailure(of: "clock", log: log) { () throws(OperationalError) in try clockKeeper.look() }
            logFailure(of: "replay", log: log) { () throws(OperationalError) in
                try replays.runMaintenance(at: SystemTime().now)
            }
        }
        readiness.beginDraining()
        // After a hand-over the manager follows the successor.
        if !handOver.hasHandedOver { manager.tell(.stopping) }
        if handOver.hasHandedOver { service.stop() } else { service.drain() }
        if webhooks.stop() { webhookStore.close() }
        accounts.stop()
        sessions.stop()
        requests.stop()
        writer.stop()
        membership?.stop()
        // Only now the store contains all that this process did; the successor reads it when this end of the
        // connection closes.
        relations.end()
        meterWriter.stop()
        clockKeeper.stop()
        watchdog?.stop()
        log?.stop()
    }

    /// Nil unless other machines can open the store.
    private static func membership(
        of configuration: Configuration, lease: NodeLease, handOver: HandoverState,
        status: NodeStatus, drill: OutageDrill, clock: TrustedClock, composition: any ServerComposition
    ) throws(OperationalError) -> NodeMembership? {
        guard let channel = configuration.store.openChannel(interruptedBy: drill) else { return nil }
        return try NodeMembership(
            composition.channel(channel), named: "\(Configuration.machine)/\(configuration.listen)",
            lease: lease, policy: configuration.outage, status: status, handOver: handOver,
            clock: clock)
    }

    /// Records when the meter began, so that a scheme without requests is reported as unused since a day, and
    /// not without a date.
    private static func recordMeterStart(in store: any Store) throws(OperationalError) {
        guard try store.value(of: .meterBegan) == nil else { return }
        _ = try store.setIfAbsent(.meterBegan, to: Array(String(SystemTime().now).utf8))
    }

    private static func announce(_ service: Service) {
        var text = "listening on \(service.url)\n"
        if let pin = service.spkiPin { text += "spki_pin \(pin)\n" }
        print(text, terminator: "")
        fflush(nil)
    }

    /// Logs failures while serving; the next turn tries again, and requests fail closed meanwhile.
    @discardableResult
    private static func logFailure(of what: String, log: EventLog?, body: () throws(OperationalError) -> Void)
        -> OperationalError?
    {
        do {
            try body()
            return nil
        } catch {
            log?.note(subject: what, message: error.message)
            return error
        }
    }
}
