import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignReplay
import CountersignSeal
import CountersignThreads
import CountersignWire
import Glibc
import Synchronization

/// The running server: its workers, and how they start, reload and drain. Safe to share once it has started:
/// later changes run on the loops.
final class Service: @unchecked Sendable {
    /// As configured; ``planned(_:workers:log:)`` may lower a limit of it.
    private let running: RunningConfiguration
    private let log: EventLog?
    private let composition: any ServerComposition
    private let assertionKeys: AssertionKeys
    /// The hosts that requests may be addressed to.
    private let authorities: [String]
    let sockets: ListeningSockets
    private let registry = ConnectionRegistry()
    private var workers: [LoopWorker] = []
    /// The admin listener's own loop: it answers whatever load clients put on the others.
    private var administration: LoopWorker?
    private var adminPort: Int?
    private var upstream: UpstreamTarget?
    private var probe: UpstreamProbe?
    /// The pin for clients; nil without TLS.
    let spkiPin: String?
    private let certificate = CertificateExpiry()
    /// In whole Unix seconds; nil without TLS.
    var certificateEnd: Int64? { certificate.seconds }
    /// How the last reload ended.
    let reloads = ReloadHistory()
    /// What the server served in the minutes before.
    let traffic: TrafficHistory
    /// Nil unless spans are exported.
    private let spanExporter: SpanExporter?
    /// Nil without a console, or if the settings leave it no room.
    private let refusalStore: RefusalStore?
    /// The port that clients connect to.
    let port: Int

    /// Opens the ports and prepares one worker per core; accepts no connection before ``start()``.
    init(
        _ running: RunningConfiguration, log: EventLog?, signing: ResponseSigner, meter: RequestMeter,
        writer: GroupWriter, replay: ReplayBackend, rows: RowAuthenticator,
        adminToken: String, decideSecret: String, assertionKeys: AssertionKeys, once: IdempotencyCoordinator,
        keys: ReleaseKeyDirectory, guesses: AccountGuesses,
        routes: RouteTable,
        readiness: Readiness, membership: NodeMembership? = nil, drills: DrillControl,
        webhooks: WebhookSender,
        sockets: ListeningSockets, services: AdminServices?, composition: any ServerComposition,
        clock: TrustedClock,
        makeGate: (_ authorities: [String]) throws(OperationalError) -> Gate
    ) throws(OperationalError) {
        // At least one worker for each socket that was taken over: no other process accepts from those.
        let configured = running.current
        let count = max(
            configured.workers ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))), sockets.listeners.count)
        let configuration = Service.planned(configured, workers: count, log: log)
        try configuration.checkContradictions(workers: count)
        self.running = running
        self.log = log
        self.composition = composition
        self.assertionKeys = assertionKeys
        self.sockets = sockets
        let rates = RateCounter()
        let traceBudget = TraceBudget()
        let kept = configuration.refusalBytes
        refusalStore =
            services == nil || kept == 0 ? nil : try RefusalStore(in: configuration.data, bytes: kept)
        let recentRefusals = RecentRefusals(store: refusalStore)
        let traffic = TrafficHistory(meter)
        self.traffic = traffic
        let exporter = try SpanExporter(configuration.tracing, log: log)
        spanExporter = exporter
        let tls = try Certificate.context(for: configuration)
        spkiPin = tls?.spkiPin
        certificate.read(tls)
        do {
            let (descriptors, port) = try sockets.open(configuration.listen, atLeast: count)
            self.port = port
            let authorities = Service.authorities(configuration, port: port)
            self.authorities = authorities
            let target = try Service.upstream(configuration, log: log)
            upstream = target
            let settings = Service.listenerSettings(
                configuration, authorities: authorities, tls: tls, servingPath: composition.servingPath)
            let decider = try configuration.decide.map { (dialect) throws(OperationalError) in
                try DecideEndpoint(dialect, configuration: configuration, secretAt: decideSecret)
            }
            var loops: [Metrics.Loop] = []
            for index in 0..<count {
                let loop = try EventLoop()
                replay.shared?.attach(to: loop)
                let pool = Service.pool(
                    target, on: loop, configuration: configuration, part: (index, count))
                loops.append(Metrics.Loop(lag: loop.lag, pool: pool?.usage))
                let gate = try makeGate(authorities)
                let gateway = Gateway(
                    gate: gate, releases: keys, signing: signing,
                    backend: pool.map { .upstream($0) } ?? .echo,
                    identity: CallerIdentityFields(
                        assertionKeys, configuration: configuration, authorities: authorities,
                        rewriter: composition.identityRewriter),
                    once: once,
                    routes: routes, decider: decider, limits: configuration.limits,
                    proxies: TrustedProxies(configuration.trustedProxies), tally: LoopRequestCounter(meter),
                    log: log, refusals: services.map { _ in RefusalRecorder(recentRefusals, gate: gate) },
                    tracer: LoopTracer(
                        TraceRules(configuration.tracing), exportingTo: exporter, budget: traceBudget,
                        seed: Service.seed()),
                    traffic: TrafficControl(configuration.traffic, counter: rates),
                    clock: clock, seed: Service.seed())
                let listener = Listener(
                    descriptor: try descriptors[index].copy(), loop: loop, settings: settings,
                    registry: registry,
                    handler: composition.handler(gateway, replay: replay.current))
                workers.append(
                    LoopWorker(loop: loop, listeners: [listener], gateway: gateway, upstream: pool))
            }
            if let admin = configuration.admin {
                let metrics = Metrics(
                    meter: meter, registry: registry, running: running, loops: loops, writer: writer,
                    certificate: certificate, replay: replay, rows: rows, nodes: membership,
                    drills: drills, spans: exporter, webhooks: webhooks, keys: keys, guesses: guesses,
                    refusals: refusalStore, clock: clock, began: clock.now)
                if let services { readiness.watchPending(.administration) { services.hang } }
                let routes = AdminRoutes(
                    token: try AdminToken(at: adminToken), metrics: metrics, readiness: readiness,
                    drills: drills, services: services,
                    figures: ServerFigures(
                        traffic: traffic, refusals: recentRefusals, metrics: metrics, readiness: readiness,
                        reloads: reloads),
                    running: running, log: log, loops: workers.map(\.loop))
                let loop = try EventLoop()
                administration = LoopWorker(
                    loop: loop,
                    listeners: [
                        try Service.admin(
                            at: admin, sockets: sockets, loop: loop, configuration: configuration, tls: tls,
                            routes: routes)
                    ])
                probe = target.map {
                    Service.probe($0, on: loop, configuration: configuration, readiness: readiness)
                }
            }
        } catch {
            throw (error as? OperationalError) ?? OperationalError(.failed, message: "\(error)")
        }
    }

    private var configuration: Configuration { running.current }

    /// Event loops that serve clients.
    var workerCount: Int { workers.count }

    /// `https://127.0.0.1:8443`, with the port that was picked.
    var url: String {
        let scheme = configuration.tls == .off ? "http" : "https"
        return
            "\(scheme)://\(HostPort(host: configuration.listen.host, port: UInt16(truncatingIfNeeded: port)))"
    }

    func start() throws(OperationalError) {
        FileDescriptorLimits.startRuntime()
        try refusalStore?.start()
        do {
            if let administration {
                for listener in administration.listeners { listener.start() }
                try administration.loop.start(name: "admin", priority: .raised)
            }
            for (index, worker) in workers.enumerated() {
                for listener in worker.listeners { listener.start() }
                try worker.loop.start(name: "worker-\(index)")
            }
            probe?.start()
        } catch {
            throw OperationalError(.failed, message: error.description)
        }
    }

    /// All that a reload can fail on, done: what remains is to put the results in place.
    struct PreparedReload {
        fileprivate let configuration: Configuration
        fileprivate let tls: TLSContext?
        fileprivate let upstreamTLS: TLSContext?
        /// Nil where the host and the port stay.
        fileprivate let destination: UpstreamTarget.Replacement?
        fileprivate let log: EventLog.Sink?
    }

    /// Reads the files that `configuration` names, which must not contradict itself, and opens its log.
    /// Changes nothing of the running server. A certificate of ``TLSMode/automatic`` that is not there is
    /// made last, when all else has succeeded.
    func prepareReload(to configuration: Configuration) throws(OperationalError) -> PreparedReload {
        let upstreamTLS = try configuration.upstreamTLS()
        var destination: UpstreamTarget.Replacement?
        if let url = configuration.upstream, let old = running.current.upstream,
            url.host != old.host || url.port != old.port
        {
            do {
                destination = try .init(host: url.host, port: Int(url.port), tls: upstreamTLS)
            } catch {
                throw OperationalError(.failed, message: "--upstream: \(error.description)")
            }
        }
        let sink = try EventLog.Sink(configuration.log)
        let tls = try Certificate.context(for: configuration)
        return PreparedReload(
            configuration: configuration, tls: tls, upstreamTLS: upstreamTLS, destination: destination,
            log: sink)
    }

    /// Puts the settings in place on every loop, and returns once they are, or after five seconds. Returns
    /// the number of loops that have not come to it by then: one that is busy takes the settings later, and
    /// one that has ended, because the server is stopping, never. A request in flight may see the earlier
    /// value of one setting and the later one of another.
    func apply(_ reload: PreparedReload) -> Int {
        let configuration = Service.planned(reload.configuration, workers: workers.count, log: log)
        if let sink = reload.log { log?.continueTo(sink, sampling: configuration.logSampling) }
        if let destination = reload.destination {
            upstream?.replace(by: destination)
        } else {
            upstream?.replace(tls: reload.upstreamTLS)
        }
        let settings = Service.listenerSettings(
            configuration, authorities: authorities, tls: reload.tls, servingPath: composition.servingPath)
        let remaining = PendingLoops()
        for (index, worker) in workers.enumerated() {
            let limits = configuration.upstreamSettings.limits.part(index, of: workers.count)
            remaining.perform(on: worker.loop) { [composition, assertionKeys, authorities] in
                worker.upstream?.replace(limits: limits, deadlines: configuration.deadlines)
                worker.gateway?.replace(
                    by: Gateway.Replacement(
                        limits: configuration.limits, proxies: TrustedProxies(configuration.trustedProxies),
                        identity: CallerIdentityFields(
                            assertionKeys, configuration: configuration, authorities: authorities,
                            rewriter: composition.identityRewriter),
                        rules: configuration.headRules, traces: TraceRules(configuration.tracing),
                        traffic: configuration.traffic))
                for listener in worker.listeners { listener.replace(settings: settings) }
            }
        }
        if let administration {
            let settings = Service.adminSettings(configuration, tls: reload.tls)
            let probe = probe
            remaining.perform(on: administration.loop) {
                for listener in administration.listeners { listener.replace(settings: settings) }
                probe?.replace(deadlines: configuration.deadlines)
            }
        }
        running.replace(by: reload.configuration)
        certificate.read(reload.tls)
        return remaining.wait(milliseconds: Service.applyMilliseconds)
    }

    private static let applyMilliseconds = 5_000

    private var allWorkers: [LoopWorker] { workers + (administration.map { [$0] } ?? []) }

    private let unanswered = Atomic(0)

    /// Whether every loop has done what the last call asked of it; asks again. May be called on one thread,
    /// once the service has started.
    func loopsHaveResponded() -> Bool {
        guard unanswered.load(ordering: .acquiring) == 0 else { return false }
        let workers = allWorkers
        unanswered.store(workers.count, ordering: .releasing)
        for worker in workers {
            worker.loop.perform { self.unanswered.subtract(1, ordering: .acquiringAndReleasing) }
        }
        return true
    }

    var openConnections: Int { registry.current }

    /// Leaves new connections to a successor; see ``Listener/stopAccepting()``. May be called on any thread
    /// once the service has started, as may the two functions below.
    func stopAccepting() { for worker in allWorkers { worker.stopAccepting() } }

    /// Undoes ``stopAccepting()``.
    func resumeAccepting() { for worker in allWorkers { worker.resumeAccepting() } }

    /// Closes this process's listening sockets, and ends idle connections.
    func closeListeners() {
        sockets.close()
        for worker in allWorkers { worker.drain() }
    }

    /// Ends the loops after a successor has taken over and the wait for requests in flight is over.
    func stop() {
        closeListeners()
        for worker in allWorkers { worker.stop() }
        refusalStore?.stop()
        spanExporter?.stop()
    }

    /// Stops accepting and waits for requests in flight, until the deadline or a second signal.
    func drain() {
        sockets.close()
        for worker in workers { worker.drain() }
        let deadline = EventLoop.monotonicSeconds() + Int64(configuration.deadlines.drain)
        while registry.current > 0, EventLoop.monotonicSeconds() < deadline {
            if Signals.next(milliseconds: 20) == .drain { break }
        }
        for worker in workers { worker.stop() }
        administration?.drain()
        administration?.stop()
        refusalStore?.stop()
        spanExporter?.stop()
    }

    /// Writes to standard error as well, so that an operator sees it if the log goes to a file.
    static func warn(_ text: String, about subject: String, in log: EventLog?) {
        log?.note(subject: subject, message: text)
        let line = Array("countersign: \(text)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }

    // MARK: Parts

    /// The settings with as many client connections as the process may have open files for.
    private static func planned(_ configuration: Configuration, workers: Int, log: EventLog?) -> Configuration
    {
        var configuration = configuration
        let plan = FileDescriptorBudget(
            available: FileDescriptorLimits.raiseLimit(), connections: configuration.limits.connections,
            upstreams: configuration.upstream == nil ? 0 : configuration.upstreamSettings.limits.connections,
            workers: workers)
        configuration.limits.connections = plan.connections
        if let warning = plan.warning { warn(warning, about: "limits", in: log) }
        return configuration
    }

    private static func listenerSettings(
        _ configuration: Configuration, authorities: [String], tls: TLSContext?, servingPath: ServingPath
    ) -> Listener.Settings {
        var rules = configuration.headRules
        rules.defaultAuthority = authorities.first
        // A proxy that asks for a decision forwards such fields, and backends read `_` as `-`:
        // `Countersign_Account`.
        if configuration.decide != nil { rules.underscoreFields = .refuse }
        var settings = Listener.Settings(
            limits: configuration.limits, deadlines: configuration.deadlines, tls: tls, rules: rules)
        let proxies = TrustedProxies(configuration.trustedProxies)
        settings.proxyProtocol = configuration.proxyProtocol
        settings.servingPath = servingPath
        settings.isTrustedProxy = { proxies.isTrusted(peer: $0.text) }
        return settings
    }

    private static func adminSettings(_ configuration: Configuration, tls: TLSContext?) -> Listener.Settings {
        var limits = Limits()
        limits.connections = Service.adminConnections
        limits.addressConnections = Service.adminConnections / 2
        var settings = Listener.Settings(
            limits: limits, deadlines: configuration.deadlines, tls: configuration.adminTLS == .on ? tls : nil
        )
        settings.newcomers = .takingPlaces
        return settings
    }

    /// Sets the process not ready until the backend was reached once.
    private static func probe(
        _ target: UpstreamTarget, on loop: EventLoop, configuration: Configuration, readiness: Readiness
    ) -> UpstreamProbe {
        readiness.set(.upstream, detail: "\(target.host) has not been reached yet")
        return UpstreamProbe(target: target, loop: loop, deadlines: configuration.deadlines) { failure in
            if let failure { readiness.set(.upstream, detail: failure) } else { readiness.clear(.upstream) }
        }
    }

    /// The listen address and `localhost`, at the port, unless the settings name others.
    private static func authorities(_ configuration: Configuration, port: Int) -> [String] {
        guard configuration.authorities.isEmpty else { return configuration.authorities }
        let port = UInt16(truncatingIfNeeded: port)
        return [configuration.listen.host, "localhost"].map { HostPort(host: $0, port: port).description }
    }

    private static func upstream(_ configuration: Configuration, log: EventLog?) throws -> UpstreamTarget? {
        guard let url = configuration.upstream else { return nil }
        let target = UpstreamTarget(host: url.host, port: Int(url.port), tls: try configuration.upstreamTLS())
        // A backend whose name does not resolve yet counts as down: 502 until it resolves.
        target.keepResolving { Service.warn("--upstream: \($0)", about: "settings", in: log) }
        return target
    }

    private static func pool(
        _ target: UpstreamTarget?, on loop: EventLoop, configuration: Configuration,
        part: (index: Int, count: Int)
    ) -> UpstreamPool? {
        guard let target else { return nil }
        let limits = configuration.upstreamSettings.limits.part(part.index, of: part.count)
        return UpstreamPool(target: target, loop: loop, limits: limits, deadlines: configuration.deadlines)
    }

    private static func admin(
        at address: HostPort, sockets: ListeningSockets, loop: EventLoop, configuration: Configuration,
        tls: TLSContext?, routes: AdminRoutes
    ) throws -> Listener {
        let descriptor = try sockets.openAdmin(address).copy()
        return Listener(
            descriptor: descriptor, loop: loop, settings: adminSettings(configuration, tls: tls),
            registry: ConnectionRegistry(),
            handler: routes)
    }

    private static let adminConnections = 64

    private static func seed() -> UInt64 {
        SystemRandom().bytes(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// One loop with its listening sockets, its gateway and its connections to the upstream.
struct LoopWorker {
    let loop: EventLoop
    let listeners: [Listener]
    /// Nil for the administrators' listener, as is `upstream`, which is nil for the built-in echo, too.
    var gateway: Gateway?
    var upstream: UpstreamPool?

    func drain() {
        for listener in listeners { loop.perform { listener.drain() } }
    }

    func stopAccepting() {
        for listener in listeners { loop.perform { listener.stopAccepting() } }
    }

    func resumeAccepting() {
        for listener in listeners { loop.perform { listener.resumeAccepting() } }
    }

    /// Cuts the remaining connections and ends the loop.
    func stop() {
        for listener in listeners { loop.perform { listener.abort() } }
        loop.stop()
        loop.join()
    }
}

extension CallerIdentityFields {
    /// Signs assertions with the URL of the deployment's own routes as the issuer, so that `iss` with `/jwks`
    /// has the keys.
    fileprivate convenience init(
        _ keys: AssertionKeys, configuration: Configuration, authorities: [String],
        rewriter: FieldLineRewriter?
    ) {
        let scheme = configuration.tls == .off ? "http" : "https"
        let issuer = "\(scheme)://\(authorities.first ?? "")\(configuration.prefix)"
        self.init(
            AssertionIssuer(
                keys, issuer: issuer,
                audience: configuration.assertionAudience ?? configuration.upstream?.text ?? issuer),
            proxies: TrustedProxies(configuration.trustedProxies),
            callerFields: ForbiddenCallerFields(keeping: configuration.forwardedCallerFields),
            rewriter: rewriter)
    }
}
