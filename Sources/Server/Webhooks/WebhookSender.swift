import CountersignAuthority
import CountersignGate
import CountersignThreads
import CountersignTransport
import CountersignTrust
import CountersignWire

/// Delivers what waits in the outbox, on threads of its own, because resolving a name and a slow endpoint
/// block.
///
/// A delivery is deleted after a 2xx response only. A process that ends in between leaves it to the next
/// one, or to another node, so that an endpoint may be told of an event more than once.
final class WebhookSender: Sendable {
    private static let threads = 4
    /// Deliveries to one endpoint at a time, so that a slow one leaves threads to the others.
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
        /// Threads that have not ended.
        var running = 0
        var inFlight: [String: Int] = [:]
        var figures = Figures()
        var counts = WebhookCounts()
        /// Why the outbox or the endpoints could not be read at the last look; nil if they could.
        var failure: String?
        /// The endpoints whose last attempt failed: each change is noted once.
        var failing: Set<String> = []
    }

    private let deployment: Deployment
    private let store: any Store
    private let note: @Sendable (String) -> Void
    private let state = Monitor(State())

    /// `store` is the sender's own connection.
    init(_ deployment: Deployment, store: any Store, note: @escaping @Sendable (String) -> Void) {
        self.deployment = deployment
        self.store = store
        self.note = note
    }

    var figures: Figures { state.with { $0.figures } }

    func start() throws(OperationalError) {
        state.with { $0.running = WebhookSender.threads }
        // Nothing joins them: an endpoint may take its time.
        _ = try WorkerThreads(WebhookSender.threads, purpose: "to deliver webhooks on") {
            self.run()
            self.state.with { $0.running -= 1 }
            self.state.wakeAll()
        }
    }

    /// Waits for attempts in flight, at most two seconds: what they have not settled by then is delivered
    /// again later. False if some go on; the store is then still in use.
    func stop() -> Bool {
        state.with { $0.isStopping = true }
        state.wakeAll()
        return state.wait(milliseconds: 2_000) { $0.running == 0 ? () : nil } != nil
    }

    /// Call every few seconds. Tells nothing without `now`, and deletes nothing without `sweepTime`.
    func runMaintenance(at now: TrustedTime?, sweepingAt sweepTime: TrustedTime?) throws(OperationalError) {
        if let now { try store.announceStages(at: now) }
        if let sweepTime {
            try store.forgetDeadDeliveries(before: sweepTime.earlier(by: WebhookSender.deadDays * 86_400))
        }
        let counts = try store.deliveryCounts()
        state.with { $0.counts = counts }
    }

    /// As of the last call of ``runMaintenance(at:)``: no event loop waits for the store.
    var counts: WebhookCounts { state.with { $0.counts } }

    // MARK: A thread

    private func run() {
        while !state.with({ $0.isStopping }) {
            if !deliverOne() { pause() }
        }
    }

    /// A second, or until the server stops.
    private func pause() {
        state.wait(milliseconds: 1_000) { $0.isStopping ? () : nil }
    }

    /// One thread at a time takes a delivery, so that each sees what the others have taken.
    private let taking = Locked<Void>(())

    /// False if nothing is due, or the store cannot be reached.
    private func deliverOne() -> Bool {
        do throws(OperationalError) {
            let settings = try deployment.webhookSettings()
            report(failure: nil)
            guard !settings.endpoints.isEmpty, let delivery = try take() else { return false }
            defer { state.with { $0.inFlight[delivery.endpoint, default: 1] -= 1 } }
            guard let endpoint = settings.endpoints.first(where: { $0.id == delivery.endpoint }) else {
                // It was removed meanwhile, or another program has written the row.
                try store.finishDelivery(delivery.number)
                return true
            }
            try settle(delivery, to: endpoint, after: attempt(delivery, to: endpoint))
            return true
        } catch {
            report(failure: error.message)
            return false
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

    /// The next delivery that is due, of an endpoint that is not busy; counts it as one in flight.
    private func take() throws(OperationalError) -> WebhookDelivery? {
        let taken = taking.with { _ -> Result<WebhookDelivery?, OperationalError> in
            let busy = state.with { state in
                Set(state.inFlight.filter { $0.value >= WebhookSender.mostOfEndpoint }.keys)
            }
            do throws(OperationalError) {
                let delivery = try store.takeDelivery(
                    dueAt: SystemTime().now, leaving: busy, for: WebhookSender.leaseSeconds)
                if let delivery { state.with { $0.inFlight[delivery.endpoint, default: 0] += 1 } }
                return .success(delivery)
            } catch {
                return .failure(error)
            }
        }
        return try taken.get()
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
        let now = SystemTime().now
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
                of: delivery.body, event: delivery.event, sentTo: uri, at: SystemTime().now
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
