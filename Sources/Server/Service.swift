import CountersignGate
import CountersignHTTP
import CountersignSeal
import CountersignWire
import Glibc

/// The running server: its workers, and how they start, reload and drain. Safe to share once it has started:
/// what changes then does so on the loops.
final class Service: @unchecked Sendable {
    private let configuration: Configuration
    private let log: EventLog?
    let sockets: ListeningSockets
    private let registry = ConnectionRegistry()
    private var workers: [Worker] = []
    /// The admin listener's own loop: it answers whatever strangers do to the others.
    private var administration: Worker?
    private var adminPort: Int?
    private var upstream: UpstreamTarget?
    private var probe: UpstreamProbe?
    /// What clients pin; nil without TLS.
    let spkiPin: String?
    /// The port that clients connect to.
    let port: Int

    /// Opens the ports and prepares one worker a core; nothing is accepted before ``start()``.
    init(
        _ configuration: Configuration, log: EventLog?, signing: AnswerSigning, meter: Meter, replay: ReplayFile,
        adminToken: String, decideSecret: String, assertionKeys: AssertionKeys, once: Once, routes: RouteTable,
        readiness: Readiness,
        sockets: ListeningSockets,
        makeGate: (_ authorities: [String]) throws(Fault) -> Gate
    ) throws(Fault) {
        // At least one worker for each socket that was taken over: no other process accepts from those.
        let count = max(
            configuration.workers ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))), sockets.listeners.count)
        var configuration = configuration
        let plan = DescriptorPlan(
            available: Descriptors.raiseLimit(), connections: configuration.limits.connections,
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
            // Proxies that ask pass such fields on, and backends read `_` as `-`: `Countersign_Account`.
            if configuration.decide != nil { rules.underscoreFields = .refuse }
            var settings = Listener.Settings(
                limits: configuration.limits, deadlines: configuration.deadlines, tls: tls, rules: rules)
            let proxies = TrustedProxies(configuration.trustedProxies)
            settings.proxyProtocol = configuration.proxyProtocol
            settings.isTrustedProxy = { proxies.isTrusted(peer: $0.text) }
            let decider = try configuration.decide.map { (dialect) throws(Fault) in
                try Decider(dialect, configuration, secretAt: decideSecret)
            }
            for index in 0..<count {
                let loop = try EventLoop()
                let gateway = Gateway(
                    gate: try makeGate(authorities), signing: signing,
                    backend: Service.backend(target, loop, configuration, part: (index, count)),
                    identity: Identity(
                        Service.asserter(assertionKeys, configuration, authorities),
                        proxies: TrustedProxies(configuration.trustedProxies),
                        callerFields: CallerFields(keeping: configuration.forwardedCallerFields)), once: once,
                    routes: routes, decider: decider, limits: configuration.limits,
                    proxies: TrustedProxies(configuration.trustedProxies), tally: Tally(meter), log: log,
                    clock: SystemTime(), seed: Service.seed())
                #if SABOTAGE
                    let handler = Sabotage.handler(gateway, replay)
                #else
                    let handler = gateway
                #endif
                let listener = Listener(
                    descriptor: try descriptors[index].copy(), loop: loop, settings: settings, registry: registry,
                    handler: handler)
                workers.append(Worker(loop: loop, listeners: [listener]))
            }
            if let admin = configuration.admin {
                let metrics = Metrics(
                    meter: meter, registry: registry, replay: replay, clock: SystemTime(), began: SystemTime().now)
                let routes = AdminRoutes(
                    token: try AdminToken(at: adminToken), metrics: metrics, readiness: readiness)
                let loop = try EventLoop()
                administration = Worker(
                    loop: loop, listeners: [try Service.admin(admin, sockets, loop, configuration, routes)])
                probe = target.map { Service.probe($0, loop, configuration, readiness) }
            }
        } catch let fault as HTTPFault {
            throw Fault(.failed, fault.description)
        } catch let fault as Fault {
            throw fault
        } catch {
            throw Fault(.failed, "\(error)")
        }
    }

    /// `https://127.0.0.1:8443`, with the port that was picked.
    var url: String {
        let scheme = configuration.tls == .off ? "http" : "https"
        return "\(scheme)://\(HostPort(host: configuration.listen.host, port: UInt16(truncatingIfNeeded: port)))"
    }

    func start() throws(Fault) {
        Descriptors.startRuntime()
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
            throw Fault(.failed, error.description)
        }
    }

    /// Takes up renewed certificates, the listener's and the backend's, and opens the log again.
    func reload() throws(Fault) {
        log?.reopen()
        let tls = try Certificate.context(for: configuration)
        for worker in workers {
            guard let listener = worker.listeners.first else { continue }
            worker.loop.perform { listener.replace(tls: tls) }
        }
        if let upstream { upstream.replace(tls: try configuration.upstreamTLS()) }
    }

    private var allWorkers: [Worker] { workers + (administration.map { [$0] } ?? []) }

    var openConnections: Int { registry.current }

    /// Leaves new connections to a successor; see ``Listener/stopAccepting()``. On any thread, once it has
    /// started, as the two below.
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

    /// An operator must see it, also where the log goes to a file.
    static func warn(_ text: String, about subject: String, in log: EventLog?) {
        log?.note(subject, text)
        let line = Array("countersign: \(text)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }

    // MARK: Parts

    /// Not ready until the backend was reached once.
    private static func probe(
        _ target: UpstreamTarget, _ loop: EventLoop, _ configuration: Configuration, _ readiness: Readiness
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

    /// Whose assertions they are: where the deployment's own routes stand, so that `iss` with `/jwks` has the keys.
    private static func asserter(
        _ keys: AssertionKeys, _ configuration: Configuration, _ authorities: [String]
    ) -> Asserter {
        let scheme = configuration.tls == .off ? "http" : "https"
        let issuer = "\(scheme)://\(authorities.first ?? "")\(configuration.prefix)"
        return Asserter(
            keys, issuer: issuer, audience: configuration.assertionAudience ?? configuration.upstream?.text ?? issuer)
    }

    private static func upstream(_ configuration: Configuration, workers: Int) throws -> UpstreamTarget? {
        try configuration.checkUpstream(workers: workers)
        guard let url = configuration.upstream else { return nil }
        let target = UpstreamTarget(host: url.host, port: Int(url.port), tls: try configuration.upstreamTLS())
        // A backend whose name cannot be found yet is one that is down: 502 until it can.
        target.keepResolving()
        return target
    }

    private static func backend(
        _ target: UpstreamTarget?, _ loop: EventLoop, _ configuration: Configuration, part: (index: Int, count: Int)
    ) -> Gateway.Backend {
        guard let target else { return .echo }
        let limits = configuration.upstreamSettings.limits.part(part.index, of: part.count)
        return .upstream(
            UpstreamPool(target: target, loop: loop, limits: limits, deadlines: configuration.deadlines))
    }

    private static func admin(
        _ address: HostPort, _ sockets: ListeningSockets, _ loop: EventLoop, _ configuration: Configuration,
        _ routes: AdminRoutes
    ) throws -> Listener {
        var limits = Limits()
        limits.connections = Service.adminConnections
        limits.addressConnections = Service.adminConnections
        let settings = Listener.Settings(limits: limits, deadlines: configuration.deadlines, tls: nil)
        let descriptor = try sockets.openAdmin(address).copy()
        return Listener(
            descriptor: descriptor, loop: loop, settings: settings, registry: ConnectionRegistry(), handler: routes)
    }

    private static let adminConnections = 64

    private static func seed() -> UInt64 {
        SystemRandom().bytes(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
