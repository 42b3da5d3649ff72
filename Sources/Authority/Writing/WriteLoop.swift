import CountersignWire

/// The life of the writer's thread.
struct WriteLoop {
    private let queue: WriteQueue
    private let store: any Store
    private let note: @Sendable (String) -> Void
    private let didFail: @Sendable () -> Void

    init(
        _ queue: WriteQueue, _ store: any Store, _ note: @escaping @Sendable (String) -> Void,
        didFail: @escaping @Sendable () -> Void
    ) {
        self.queue = queue
        self.store = store
        self.note = note
        self.didFail = didFail
    }

    /// Writes until the queue is closed and empty. A store that fails is told of when it begins to fail, and when it ceases to: not
    /// for each change, of which there may be thousands a second.
    func run() {
        var isFailing = false
        while case let jobs = queue.take(), !jobs.isEmpty {
            do throws(Fault) {
                let faults = try store.together(changes(of: jobs))
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

    private func changes(of jobs: [WriteJob]) -> [(any Store) throws(Fault) -> Void] {
        var changes: [(any Store) throws(Fault) -> Void] = []
        changes.reserveCapacity(jobs.count)
        for job in jobs { changes.append(job.change) }
        return changes
    }

    private static func refusal(_ fault: Fault) -> Refusal {
        Refusal(.unavailable, fault.message, retryAfter: 1)
    }
}
