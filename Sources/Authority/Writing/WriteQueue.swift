import CountersignWire

/// The changes that wait for the writer, first in, first out. All state is under one lock, held only to add
/// or take changes; closures are called outside it.
final class WriteQueue: @unchecked Sendable {
    private let bounds: GroupWriter.Bounds
    private let monitor = Monitor()
    private var waiting: [WriteJob] = []
    private var isClosed = false

    init(_ bounds: GroupWriter.Bounds) { self.bounds = bounds }

    var count: Int { monitor.withLock { waiting.count } }

    /// Queues the job, or refuses it before returning.
    func add(_ job: WriteJob) {
        let refusal: Refusal? = monitor.withLock {
            guard !isClosed else {
                return Refusal(.unavailable, detail: "the server is stopping", retryAfter: 1)
            }
            guard job.ticket.state != .cancelled else { return cancelled }
            guard waiting.count < bounds.waiting else {
                return Refusal(
                    .unavailable, detail: "\(waiting.count) changes wait for the store", retryAfter: 1)
            }
            job.ticket.state = .queued
            waiting.append(job)
            monitor.wakeOne()
            return nil
        }
        if let refusal { job.end(refusal) }
    }

    /// Removes the job if it has not begun; if it has not been added yet, ``add(_:)`` will refuse it.
    func cancel(_ ticket: JobTicket) {
        let job: WriteJob? = monitor.withLock {
            let state = ticket.state
            if state != .taken { ticket.state = .cancelled }
            guard state == .queued, let place = waiting.firstIndex(where: { $0.ticket === ticket }) else {
                return nil
            }
            return waiting.remove(at: place)
        }
        job?.end(cancelled)
    }

    /// Waits for changes and takes as many as may share a transaction; empty once the queue is closed and
    /// empty.
    func take() -> [WriteJob] {
        monitor.withLock {
            while waiting.isEmpty, !isClosed { monitor.wait() }
            let taken = Array(waiting.prefix(bounds.together))
            waiting.removeFirst(taken.count)
            for job in taken { job.ticket.state = .taken }
            return taken
        }
    }

    /// Refuses further changes; the waiting ones are still written.
    func close() {
        monitor.withLock {
            isClosed = true
            monitor.wakeAll()
        }
    }

    private var cancelled: Refusal { Refusal(.unavailable, detail: "the caller left") }
}

/// One caller's change. The code that removes it from the queue, under the queue's lock, calls `end`
/// exactly once, so that the continuation is resumed exactly once.
struct WriteJob: Sendable {
    let ticket: JobTicket
    let change: @Sendable (any Store) throws(OperationalError) -> Void
    /// Called with nil once the change is durable, else with the reason why it was not made.
    let end: @Sendable (Refusal?) -> Void
}

/// The body of the writer's thread.
struct WriteLoop {
    private let queue: WriteQueue
    private let store: any Store
    private let note: @Sendable (String) -> Void
    private let didFail: @Sendable () -> Void

    init(
        _ queue: WriteQueue, store: any Store, note: @escaping @Sendable (String) -> Void,
        didFail: @escaping @Sendable () -> Void
    ) {
        self.queue = queue
        self.store = store
        self.note = note
        self.didFail = didFail
    }

    /// Writes until the queue is closed and empty. It reports when the store begins to fail and when it
    /// works again, not every failed change, of which there may be thousands a second.
    func run() {
        var isFailing = false
        while case let jobs = queue.take(), !jobs.isEmpty {
            do {
                let faults = try store.applyTogether(changes(of: jobs))
                if isFailing { note("the store takes changes again") }
                isFailing = false
                for (job, fault) in zip(jobs, faults) { job.end(fault.map(WriteLoop.refusal)) }
            } catch {
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
