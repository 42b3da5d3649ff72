import CountersignThreads
import CountersignWire

/// One caller's change. The code that takes it from the queue calls `end` exactly once, so that the
/// continuation is resumed exactly once.
struct WriteJob: Sendable {
    let change: @Sendable (any Store) throws(OperationalError) -> Void
    /// Called with nil once the change is durable, else with the reason why it was not made.
    let end: @Sendable (Refusal?) -> Void
}

extension BoundedQueue<WriteJob> {
    /// Queues the change, or refuses it before returning.
    func submit(_ job: WriteJob, ticket: JobTicket) {
        switch add(job, ticket: ticket) {
        case .queued: break
        case .closed: job.end(Refusal(.unavailable, detail: "the server is stopping", retryAfter: 1))
        case .cancelled: job.end(Refusal(.unavailable, detail: "the caller left"))
        case .full(let load):
            job.end(
                Refusal(.unavailable, detail: "\(load.waiting) changes wait for the store", retryAfter: 1))
        }
    }

    func withdraw(_ ticket: JobTicket) {
        cancel(ticket)?.end(Refusal(.unavailable, detail: "the caller left"))
    }
}

/// The body of the writer's thread.
struct WriteLoop {
    private let queue: BoundedQueue<WriteJob>
    private let most: Int
    private let store: any Store
    private let figures: StoreWriteFigures
    private let note: @Sendable (String) -> Void
    private let didFail: @Sendable () -> Void

    init(
        _ queue: BoundedQueue<WriteJob>, takingAtMost most: Int, store: any Store, figures: StoreWriteFigures,
        note: @escaping @Sendable (String) -> Void,
        didFail: @escaping @Sendable () -> Void
    ) {
        self.queue = queue
        self.most = most
        self.store = store
        self.figures = figures
        self.note = note
        self.didFail = didFail
    }

    /// Writes until the queue is closed and empty. It reports when the store begins to fail and when it
    /// works again, not every failed change, of which there may be thousands a second.
    func run() {
        var isFailing = false
        while case let jobs = queue.take(most: most), !jobs.isEmpty {
            defer { queue.didFinish() }
            let began = ContinuousClock.now
            do {
                let faults = try store.applyTogether(changes(of: jobs))
                figures.didWrite(in: ContinuousClock.now - began, isFailed: false)
                if isFailing { note("the store takes changes again") }
                isFailing = false
                for (job, fault) in zip(jobs, faults) { job.end(fault.map(WriteLoop.refusal)) }
            } catch {
                figures.didWrite(in: ContinuousClock.now - began, isFailed: true)
                if !isFailing { note("the store takes no changes: \(error.message)") }
                isFailing = true
                didFail()
                for job in jobs { job.end(WriteLoop.refusal(error)) }
            }
        }
    }

    private func changes(of jobs: [WriteJob]) -> [(any Store) throws(OperationalError) -> Void] {
        var changes: [(any Store) throws(OperationalError) -> Void] = []
        changes.reserveCapacity(jobs.count)
        for job in jobs { changes.append(job.change) }
        return changes
    }

    private static func refusal(_ fault: OperationalError) -> Refusal {
        Refusal(.unavailable, detail: fault.message, retryAfter: 1)
    }
}
