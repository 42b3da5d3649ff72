import CountersignAuthority
import CountersignGate
import CountersignThreads
import CountersignTransport
import CountersignTrust
import CountersignWire

/// Delivers the waiting rows of the outbox. Each attempt has its own thread, because resolving a name and a
/// slow endpoint block. At most two attempts at a time go to one endpoint, so that no endpoint uses up the
/// threads of another.
///
/// The sender deletes a delivery only after a 2xx response. If the process ends before that, the next process
/// or another node delivers it again, so an endpoint may receive an event more than once.
final class WebhookSender: Sendable {
    /// The most attempts at a time to one endpoint.
    private static let mostOfEndpoint = 2
    /// Seconds that a delivery is left to the thread that has taken it: longer than an attempt can last.
    private static let leaseSeconds: Int64 = 60
    private static let attemptSeconds = 10
    private static let mostResponseBytes = 64 << 10
    /// Days that a delivery that was given up stays in the list.
    static let deadDays: Int64 = 30

    struct Figures: Sendable {
        var delivered: UInt64 = 0
        var failed: UInt64 = 0
        var givenUp: UInt64 = 0
    }

    private struct State: Sendable {
        var isStopping = false
        /// An attempt has ended since the last look into the outbox, so its endpoint is no longer busy.
        var hasEnded = false
        /// Threads that have not ended.
        var running = 0
        var inFlight: [String: Int] = [:]
        var figures = Figures()
        var counts = WebhookCounts()
        /// Why the outbox or the endpoints could not be read at the last look; nil if they could.
        var failure: String?
        /// The endpoints whose last attempt failed: each change is noted once.
        var failing: Set<String> = []
        var dropped: [WebhookDrops] = []
    }

    private let deployment: Deployment
    private let store: any Store
    private let guesses: AccountGuesses
    private let note: @Sendable (String) -> Void
    private let state = Monitor(State())

    /// `store` is the sender's own connection.
    init(
        _ deployment: Deployment, store: any Store, guesses: AccountGuesses,
        note: @escaping @Sendable (String) -> Void
    ) {
        self.deployment = deployment
        self.store = store
        self.guesses = guesses
        self.note = note
    }

    var figures: Figures { state.with { $0.figures } }

    func start() throws(OperationalError) {
        let dropped = try store.droppedDeliveries()
        state.with { $0.dropped = dropped }
        try startThread { self.run() }
    }

    private func startThread(_ body: @escaping @Sendable () -> Void) throws(OperationalError) {
        state.with { $0.running += 1 }
        do throws(OperationalError) {
            // No thread joins it, because an endpoint may take its time.
            _ = try WorkerThreads(purpose: "to deliver webhooks on") {
                body()
                self.threadEnded()
            }
        } catch {
            threadEnded()
            throw error
        }
    }

    private func threadEnded() {
        state.with { $0.running -= 1 }
        state.wakeAll()
    }

    /// Waits for attempts in flight, at most two seconds: what they have not settled by then is delivered
    /// again later. False if some go on; the store is then still in use.
    func stop() -> Bool {
        state.with { $0.isStopping = true }
        state.wakeAll()
        return state.wait(milliseconds: 2_000) { $0.running == 0 ? () : nil } != nil
    }

    /// Call every few seconds. Announces nothing without `now`, and deletes nothing without `sweepTime`.
    func runMaintenance(at now: TrustedTime?, sweepingAt sweepTime: TrustedTime?) throws(OperationalError) {
        if let now {
            try store.announceStages(at: now)
            try store.announceWithheld(at: now)
            try store.announce(guesses, at: now)
        }
        if let sweepTime {
            try store.forgetDeadDeliveries(before: sweepTime.earlier(by: WebhookSender.deadDays * 86_400))
        }
        let counts = try store.deliveryCounts()
        state.with { $0.counts = counts }
        report(dropped: try store.droppedDeliveries())
    }

    /// Logs the deliveries that this process or another has dropped since the last call.
    private func report(dropped: [WebhookDrops]) {
        let former = state.with { state in
            defer { state.dropped = dropped }
            return state.dropped
        }
        for drops in dropped {
            let known = former.first { $0.endpoint == drops.endpoint }?.count ?? 0
            guard drops.count > known else { continue }
            note(
                """
                \(drops.endpoint): its share of the outbox is full; \(drops.count - known) events were \
                dropped, \(drops.count) in all
                """)
        }
    }

    /// As of the last call of ``runMaintenance(at:)``.
    var dropped: [WebhookDrops] { state.with { $0.dropped } }

    /// As of the last call of ``runMaintenance(at:)``: no event loop waits for the store.
    var counts: WebhookCounts { state.with { $0.counts } }

    // MARK: The thread that takes deliveries

    private func run() {
        while !state.with({ $0.isStopping }) {
            if !takeOne() { pause() }
        }
    }

    /// A second, or until an attempt has ended or the server stops.
    private func pause() {
        state.wait(milliseconds: 1_000) { $0.isStopping || $0.hasEnded ? () : nil }
    }

    /// Begins an attempt at the next due delivery to an endpoint that is not busy. Returns false if there is
    /// none, or if the store cannot be reached.
    private func takeOne() -> Bool {
        do throws(OperationalError) {
            let settings = try deployment.webhookSettings()
            report(failure: nil)
            guard !settings.endpoints.isEmpty else { return false }
            let busy = state.with { state in
                state.hasEnded = false
                return Set(state.inFlight.filter { $0.value >= WebhookSender.mostOfEndpoint }.keys)
            }
            let taken = try store.takeDelivery(
                dueAt: deployment.clock.estimate, leaving: busy, for: WebhookSender.leaseSeconds)
            guard let delivery = taken else { return false }
            try begin(delivery, by: settings)
            return true
        } catch {
            report(failure: error.message)
            return false
        }
    }

    private func begin(_ delivery: WebhookDelivery, by settings: WebhookSettings) throws(OperationalError) {
        guard let endpoint = settings.endpoints.first(where: { $0.id == delivery.endpoint }) else {
            // The endpoint was removed in the meantime, or another program has written the row.
            try store.finishDelivery(delivery.number)
            return
        }
        state.with { $0.inFlight[endpoint.id, default: 0] += 1 }
        do throws(OperationalError) {
            try startThread { self.deliver(delivery, to: endpoint) }
        } catch {
            attemptEnded(endpoint)
            throw error
        }
    }

    private func attemptEnded(_ endpoint: WebhookEndpoint) {
        state.with { state in
            state.hasEnded = true
            state.inFlight[endpoint.id, default: 1] -= 1
            if state.inFlight[endpoint.id] == 0 { state.inFlight[endpoint.id] = nil }
        }
    }

    // MARK: The thread of an attempt

    private func deliver(_ delivery: WebhookDelivery, to endpoint: WebhookEndpoint) {
        defer { attemptEnded(endpoint) }
        do throws(OperationalError) {
            try settle(delivery, to: endpoint, after: attempt(delivery, to: endpoint))
        } catch {
            report(failure: error.message)
        }
    }

    /// Notes a failure of the outbox itself when it begins: the store is away, or the endpoints were altered.
    private func report(failure: String?) {
        let isNews = state.with { state in
            defer { state.failure = failure }
            return failure != nil && state.failure == nil
        }
        if isNews, let failure { note("nothing is delivered: \(failure)") }
    }

    private enum Outcome {
        case delivered
        case failed(String)
        /// The endpoint wants no more of this event.
        case gone(String)
    }

    private func settle(
        _ delivery: WebhookDelivery, to endpoint: WebhookEndpoint, after outcome: Outcome
    ) throws(OperationalError) {
        let now = deployment.clock.estimate
        switch outcome {
        case .delivered:
            try store.finishDelivery(delivery.number)
            count(endpoint, failure: nil) { $0.delivered += 1 }
        case .failed(let reason):
            let next = WebhookSchedule.next(
                afterAttempts: delivery.attempts + 1, at: now, share: Double.random(in: 0...1))
            if let next {
                try store.postponeDelivery(delivery.number, until: next, because: reason)
                count(endpoint, failure: reason) { $0.failed += 1 }
            } else {
                try giveUp(delivery, of: endpoint, at: now, because: reason)
            }
        case .gone(let reason): try giveUp(delivery, of: endpoint, at: now, because: reason)
        }
    }

    private func giveUp(
        _ delivery: WebhookDelivery, of endpoint: WebhookEndpoint, at now: Int64, because reason: String
    ) throws(OperationalError) {
        try store.buryDelivery(delivery.number, at: now, because: reason)
        count(endpoint, failure: reason) { $0.givenUp += 1 }
    }

    private func count(
        _ endpoint: WebhookEndpoint, failure: String?, change: (inout Figures) -> Void
    ) {
        let isNews = state.with { state in
            change(&state.figures)
            guard failure != nil else { return state.failing.remove(endpoint.id) != nil }
            return state.failing.insert(endpoint.id).inserted
        }
        guard isNews else { return }
        note("\(endpoint.id): " + (failure.map { "not delivered: \($0)" } ?? "delivered again"))
    }

    // MARK: An attempt

    private func attempt(_ delivery: WebhookDelivery, to endpoint: WebhookEndpoint) -> Outcome {
        do throws(OperationalError) {
            let place = try WebhookAddress(of: endpoint)
            let keys = try WebhookKeys(deployment.webhookSeeds())
            let uri = "\(place.origin)\(place.target)"
            let fields = keys.fields(
                of: delivery.body, event: delivery.event, sentTo: uri, at: deployment.clock.estimate
            ).map { HeaderField($0.name, value: $0.value) }
            let request = OutgoingRequest(
                "POST", origin: place.origin, target: place.target,
                fields: fields + [HeaderField("User-Agent", value: "countersign/\(Product.version)")],
                body: .bytes(delivery.body))
            var options = TransportOptions()
            options.concurrentRequests = 1
            options.connectTimeout = .within(.seconds(5))
            options.totalTimeout = .within(.seconds(WebhookSender.attemptSeconds))
            options.addresses = [place.origin.host: place.address]
            if let pem = endpoint.authorities {
                options.authorities = .instead(try WebhookSender.certificates(in: pem))
            }
            let chosen = options
            let status = try BlockingTask.run { () async throws(OperationalError) in
                try await WebhookSender.send(request, by: chosen)
            }
            switch status {
            case 200...299: return .delivered
            case 410: return .gone("it answers 410 Gone")
            default: return .failed("it answers \(status)")
            }
        } catch {
            return .failed(error.message)
        }
    }

    /// The status of the response. The transport follows no redirect.
    private static func send(
        _ request: OutgoingRequest, by options: TransportOptions
    ) async throws(OperationalError) -> Int {
        do throws(TransportError) {
            let response = try await HTTPTransport(trust: .system, options: options).send(request)
            // What it says is of no interest; a long answer is cut off.
            _ = try? await response.body.collect(upTo: mostResponseBytes)
            return response.status
        } catch {
            throw OperationalError(.unreachable, message: "\(error)")
        }
    }

    private static func certificates(in pem: String) throws(OperationalError) -> [Trust.Certificate] {
        do throws(TrustError) {
            return try Trust.Certificate.all(inPEM: Array(pem.utf8))
        } catch {
            throw OperationalError(.failed, message: "--ca: \(error)")
        }
    }
}

extension Store {
    /// Adds an event for each account of which many logins failed. Names without an account have none.
    func announce(_ guesses: AccountGuesses, at now: TrustedTime) throws(OperationalError) {
        for report in guesses.dueEvents(at: now.seconds) {
            let account = try account(report.account, of: report.app)
            let isAdded =
                try account.map { (account) throws(OperationalError) in
                    try announceGuesses(report.failed, ofAccount: account.number, at: now)
                } ?? true
            guesses.didAnnounce(report, isAdded: isAdded, at: now.seconds)
        }
    }
}
