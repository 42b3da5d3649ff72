import CountersignWire
import Glibc

/// Who waits for a thread, first come, first served.
///
/// Safe to share: all its state is under one lock, held for no longer than it takes to add or take a job;
/// closures are called outside it.
final class HashingQueue: @unchecked Sendable {
    private let bounds: HashingPool.Bounds
    private let clock: any MonotonicClock
    private let monitor = Monitor()
    private var waiting: [HashingJob] = []
    private var busy = 0
    private var isClosed = false
    /// Nanoseconds that one job took lately; a guess before the first.
    private var typical: UInt64 = 30_000_000

    init(_ bounds: HashingPool.Bounds, _ clock: any MonotonicClock) {
        self.bounds = bounds
        self.clock = clock
        waiting.reserveCapacity(bounds.queue + bounds.workers)
    }

    var count: Int { monitor.hold { waiting.count } }

    /// Takes the job, or refuses it before it returns.
    func add(_ job: HashingJob) {
        let refusal: Refusal? = monitor.hold {
            guard !isClosed else { return stopping }
            guard job.ticket.state != .cancelled else { return left }
            // A thread that is free but has not yet taken its job counts for one more.
            guard waiting.count < bounds.queue + max(bounds.workers - busy, 0) else {
                return Refusal(.unavailable, "the hashing queue is full", retryAfter: retryAfter)
            }
            job.ticket.state = .queued
            var job = job
            job.joined = clock.nanoseconds
            waiting.append(job)
            monitor.wakeOne()
            return nil
        }
        if let refusal { job.refuse(refusal) }
    }

    /// Takes the job out if it has not begun; if it has not come yet, it will be refused when it does.
    func cancel(_ ticket: Ticket) {
        let job: HashingJob? = monitor.hold {
            let state = ticket.state
            if state != .taken { ticket.state = .cancelled }
            guard state == .queued, let place = waiting.firstIndex(where: { $0.ticket === ticket }) else { return nil }
            return waiting.remove(at: place)
        }
        job?.refuse(left)
    }

    /// Serves until the queue is closed: the life of one thread.
    func serve() {
        HashingQueue.yieldToLoops()
        while let next = take() {
            switch next {
            case .late(let job, let refusal): job.refuse(refusal)
            case .due(let job):
                let began = clock.nanoseconds
                let handOver = job.perform()
                finished(after: clock.nanoseconds &- began)
                handOver()
            }
        }
    }

    /// Gives the calling thread, and no other, less of a claim to the processor than the loops have: a storm of logins then
    /// takes what requests leave. Source: setpriority(2), "C library/kernel differences".
    private static func yieldToLoops() { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10) }

    func close() {
        let rest = monitor.hold {
            isClosed = true
            let rest = waiting
            waiting.removeAll()
            for job in rest { job.ticket.state = .taken }
            monitor.wakeAll()
            return rest
        }
        for job in rest { job.refuse(stopping) }
    }

    private enum Next {
        case due(HashingJob)
        /// It has waited for longer than it may.
        case late(HashingJob, Refusal)
    }

    /// Waits for a job; nil when the queue is closed.
    private func take() -> Next? {
        monitor.hold {
            while waiting.isEmpty, !isClosed { monitor.wait() }
            guard !waiting.isEmpty else { return nil }
            let job = waiting.removeFirst()
            job.ticket.state = .taken
            let waited = clock.nanoseconds &- job.joined
            guard waited <= UInt64(bounds.patience) * 1_000_000 else {
                return .late(job, Refusal(.unavailable, "waited too long to be hashed", retryAfter: retryAfter))
            }
            busy += 1
            return .due(job)
        }
    }

    private func finished(after duration: UInt64) {
        monitor.hold {
            busy -= 1
            typical = (typical / 8) * 7 + duration / 8
        }
    }

    /// Whole seconds in which those who wait now will have been served; 1 at least, a minute at most.
    private var retryAfter: Int {
        let ahead = UInt64(waiting.count + busy) * typical / UInt64(bounds.workers)
        return Int(min(max((ahead + 999_999_999) / 1_000_000_000, 1), 60))
    }

    private var stopping: Refusal { Refusal(.unavailable, "the server is stopping", retryAfter: 1) }
    private var left: Refusal { Refusal(.unavailable, "the caller left") }
}
