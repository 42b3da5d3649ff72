import CountersignWire

/// Changes that wait for the writer, first come, first served. All its state is under one lock, held for no longer than it takes
/// to add or take them; closures are called outside it.
final class WriteQueue: @unchecked Sendable {
    private let bounds: GroupWriter.Bounds
    private let monitor = Monitor()
    private var waiting: [WriteJob] = []
    private var isClosed = false

    init(_ bounds: GroupWriter.Bounds) { self.bounds = bounds }

    var count: Int { monitor.hold { waiting.count } }

    /// Takes the job, or refuses it before it returns.
    func add(_ job: WriteJob) {
        let refusal: Refusal? = monitor.hold {
            guard !isClosed else { return Refusal(.unavailable, "the server is stopping", retryAfter: 1) }
            guard job.ticket.state != .cancelled else { return left }
            guard waiting.count < bounds.waiting else {
                return Refusal(.unavailable, "\(waiting.count) changes wait for the store", retryAfter: 1)
            }
            job.ticket.state = .queued
            waiting.append(job)
            monitor.wakeOne()
            return nil
        }
        if let refusal { job.end(refusal) }
    }

    /// Takes the job out if it has not begun; if it has not come yet, it will be refused when it does.
    func cancel(_ ticket: Ticket) {
        let job: WriteJob? = monitor.hold {
            let state = ticket.state
            if state != .taken { ticket.state = .cancelled }
            guard state == .queued, let place = waiting.firstIndex(where: { $0.ticket === ticket }) else { return nil }
            return waiting.remove(at: place)
        }
        job?.end(left)
    }

    /// Waits for changes and takes as many as may share a transaction; none once the queue is closed and empty.
    func take() -> [WriteJob] {
        monitor.hold {
            while waiting.isEmpty, !isClosed { monitor.wait() }
            let taken = Array(waiting.prefix(bounds.together))
            waiting.removeFirst(taken.count)
            for job in taken { job.ticket.state = .taken }
            return taken
        }
    }

    /// Takes no more; what waits is still to be written.
    func close() {
        monitor.hold {
            isClosed = true
            monitor.wakeAll()
        }
    }

    private var left: Refusal { Refusal(.unavailable, "the caller left") }
}
