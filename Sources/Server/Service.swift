import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignReplay
import CountersignSeal
import CountersignWire
import Glibc

/// The running server: its workers, and how they start, reload and drain. Safe to share once it has started:
/// later changes run on the loops.
final class Service: @unchecked Sendable {
    private let configuration: Configuration
    private let log: EventLog?
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
    /// The port that clients connect to.
    let port: Int

    /// Opens the ports and prepares one worker per core; accepts no connection before ``start()``.
    init(
        _ configuration: Configuration, log: EventLog?, signing: ResponseSigner, meter: RequestMeter,
        replay: ReplayBackend, rows: RowAuthenticator,
        adminToken: String, decideSecret: String, assertionKeys: AssertionKeys, once: IdempotencyCoordinator,
        routes: RouteTable,
        readiness: Readiness, membership: NodeMembership? = nil, drills: DrillControl,
        sockets: ListeningSockets, composition: any ServerComposition,
        makeGate: (_ authorities: [String]) throws(OperationalError) -> Gate
    ) throws(OperationalError) {
        // At least one worker for each socket that was taken over: no other process accepts from those.
        let count = max(
            configuration.workers ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))), sockets.listeners.count)
        var configuration = configuration
        let plan = FileDescriptorBudget(
            available: FileDescriptorLimits.raiseLimit(), connections: configuration.limits.connections,
            upstreams: configuration.upstream == nil ? 0 : configuration.upstreamSettings.limits.connections,
            workers: count)
        configuration.limits.connections = plan.connections
        if let warning = plan.warning { Service.warn(warning, about: "limits", in: log) }
        self.configuration = configuration
        self.log = log
        self.sockets = sockets
        let tls = try Certificate.context(for: configuration)
        spkiPin = tls?.spkiPin
        do {
            let (descriptors, port) = try sockets.open(configuration.listen, atLeast: count)
            self.port = port
            let authorities = Service.authorities(configuration, port: port)
            let target = try Service.upstream(configuration, workers: count)
            upstream = target
            var rules = configuration.headRules
            rules.defaultAuthority = authorities.first
            // A proxy that asks for a decision forwards such fields, and backends read `_` as `-`:
            // `Countersign_Account`.
            if configuration.decide != nil { rules.underscoreFields = .refuse }
            var settings = Listener.Settings(
                limits: configuration.limits, deadlines: configuration.deadlines, tls: tls, rules: rules)
            let proxies = TrustedProxies(configuration.trustedProxies)
            settings.proxyProtocol = configuration.proxyProtocol
            settings.servingPath = configuration.servingPath
            settings.isTrustedProxy = { proxies.isTrusted(peer: $0.text) }
            let decider = try configuration.decide.map { (dialect) throws(OperationalError) in
                try DecideEndpoint(dialect, configuration: configuration, secretAt: decideSecret)
            }
            for index in 0..<count {
                let loop = try EventLoop()
                replay.shared?.attach(to: loop)
                let gateway = Gateway(
                    gate: try makeGate(authorities), signing: signing,
                    backend: Service.backend(
                        target, on: loop, configuration: configuration, part: (index, count)),
                    identity: composition.identityFields(
                        Service.asserter(
                            assertionKeys, configuration: configuration, authorities: authorities),
                        proxies: TrustedProxies(configuration.trustedProxies),
                        callerFields: ForbiddenCallerFields(keeping: configuration.forwardedCallerFields)),
                    once: once,
                    routes: routes, decider: decider, limits: configuration.limits,
                    proxies: TrustedProxies(configuration.trustedProxies), tally: LoopRequestCounter(meter),
                    log: log,
                    clock: SystemTime(), seed: Service.seed())
                let listener = Listener(
                    descriptor: try descriptors[index].copy(), loop: loop, settings: settings,
                    registry: registry,
                    handler: composition.handler(gateway, replay: replay.current))
                workers.append(LoopWorker(loop: loop, listeners: [listener]))
            }
            if let admin = configuration.admin {
                let metrics = Metrics(
                    meter: meter, registry: registry, replay: replay, rows: rows, nodes: membership,
                    drills: drills,
                    clock: SystemTime(),
                    began: SystemTime().now)
                let routes = AdminRoutes(
                    token: try AdminToken(at: adminToken), metrics: metrics, readiness: readiness,
                    drills: drills)
                let loop = try EventLoop()
                administration = LoopWorker(
                    loop: loop,
                    listeners: [
                        try Service.admin(
                            at: admin, sockets: sockets, loop: loop, configuration: configuration,
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

    /// `https://127.0.0.1:8443`, with the port that was picked.
    var url: String {
        let scheme = configuration.tls == .off ? "http" : "https"
        return
            "\(scheme)://\(HostPort(host: configuration.listen.host, port: UInt16(truncatingIfNeeded: port)))"
    }

    func start() throws(OperationalError) {
        FileDescriptorLimits.startRuntime()
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

    /// Loads renewed certificates, the listener's and the backend's, and opens the log again.
    func reload() throws(OperationalError) {
        log?.reopen()
        let tls = try Certificate.context(for: configuration)
        for worker in workers {
            guard let listener = worker.listeners.first else { continue }
            worker.loop.perform { listener.replace(tls: tls) }
        }
        if let upstream { upstream.replace(tls: try configuration.upstreamTLS()) }
    }

    private var allWorkers: [LoopWorker] { workers + (administration.map { [$0] } ?? []) }

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
    }

    /// Writes to standard error as well, so that an operator sees it if the log goes to a file.
    static func warn(_ text: String, about subject: String, in log: EventLog?) {
        log?.note(subject: subject, message: text)
        let line = Array("countersign: \(text)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }

    // MARK: Parts

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

    /// Signs assertions with the URL of the deployment's own routes as the issuer, so that `iss` with `/jwks`
    /// has the keys.
    private static func asserter(
        _ keys: AssertionKeys, configuration: Configuration, authorities: [String]
    ) -> AssertionIssuer {
        let scheme = configuration.tls == .off ? "http" : "https"
        let issuer = "\(scheme)://\(authorities.first ?? "")\(configuration.prefix)"
        return AssertionIssuer(
            keys, issuer: issuer,
            audience: configuration.assertionAudience ?? configuration.upstream?.text ?? issuer)
    }

    private static func upstream(_ configuration: Configuration, workers: Int) throws -> UpstreamTarget? {
        try configuration.checkUpstream(workers: workers)
        guard let url = configuration.upstream else { return nil }
        let target = UpstreamTarget(host: url.host, port: Int(url.port), tls: try configuration.upstreamTLS())
        // A backend whose name does not resolve yet counts as down: 502 until it resolves.
        target.keepResolving()
        return target
    }

    private static func backend(
        _ target: UpstreamTarget?, on loop: EventLoop, configuration: Configuration,
        part: (index: Int, count: Int)
    ) -> Gateway.Backend {
        guard let target else { return .echo }
        let limits = configuration.upstreamSettings.limits.part(part.index, of: part.count)
        return .upstream(
            UpstreamPool(target: target, loop: loop, limits: limits, deadlines: configuration.deadlines))
    }

    private static func admin(
        at address: HostPort, sockets: ListeningSockets, loop: EventLoop, configuration: Configuration,
        routes: AdminRoutes
    ) throws -> Listener {
        var limits = Limits()
        limits.connections = Service.adminConnections
        limits.addressConnections = Service.adminConnections
        let settings = Listener.Settings(limits: limits, deadlines: configuration.deadlines, tls: nil)
        let descriptor = try sockets.openAdmin(address).copy()
        return Listener(
            descriptor: descriptor, loop: loop, settings: settings, registry: ConnectionRegistry(),
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
