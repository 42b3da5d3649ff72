import CountersignWire
import Glibc

/// Runs password hashes on threads of its own, so that a login that takes 20 ms of a core does not block an
/// event loop that serves requests in microseconds; it runs at most as many at once as there is memory for.
///
/// Everything is bounded. Memory: ``Bounds/workers`` times the memory of one hash. Waiting:
/// ``Bounds/queue`` callers, none for longer than its deadline and one hash. Further callers are refused at
/// once, with a time to retry after: refusing a caller costs one lock.
package final class HashingPool: Sendable {
    package struct Bounds: Sendable {
        /// Threads, and so concurrent hashes. Each takes the memory of its ``HashCost``: 19 MiB.
        package var workers: Int
        /// Callers that may wait for a thread.
        package var queue: Int
        /// Milliseconds that a caller may wait before its work begins.
        package var patience: Int

        package init(workers: Int, queue: Int, patience: Int = 2_000) {
            self.workers = max(workers, 1)
            self.queue = max(queue, 0)
            self.patience = max(patience, 0)
        }
    }

    package let bounds: Bounds
    private let queue: HashingQueue
    private let threads: WorkerThreads

    /// Starts the threads.
    package init(_ bounds: Bounds, clock: any MonotonicClock = SystemMonotonicClock())
        throws(OperationalError)
    {
        self.bounds = bounds
        let queue = HashingQueue(bounds, clock: clock)
        self.queue = queue
        do throws(OperationalError) {
            threads = try WorkerThreads(bounds.workers, purpose: "to hash on") { queue.serve() }
        } catch {
            queue.close()
            throw error
        }
    }

    /// Stops the threads without waiting for them and refuses waiting callers. ``stop()`` is the orderly
    /// way.
    deinit { queue.close() }

    /// Runs `work` on one of the pool's threads and returns its result on the caller's own executor.
    /// Refuses with `unavailable` and a time to retry after if the queue is full, the wait took too long,
    /// the pool stops, or the caller's task was cancelled before the work began. Work that has begun is
    /// finished.
    package func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async throws(Refusal)
        -> Result
    {
        let ticket = JobTicket()
        let queue = queue
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiting: UnsafeContinuation<Outcome<Result>, Never>) in
                let job = HashingJob(
                    ticket: ticket,
                    perform: {
                        let result = work()
                        // Resumes the caller after the thread is counted as free, so that the next caller
                        // does not find it busy.
                        return { waiting.resume(returning: .done(result)) }
                    },
                    refuse: { waiting.resume(returning: .refused($0)) })
                queue.add(job)
            }
        } onCancel: {
            queue.cancel(ticket)
        }
        switch outcome {
        case .done(let result): return result
        case .refused(let refusal): throw refusal
        }
    }

    /// Callers whose work has not begun, for the metrics.
    package var waiting: Int { queue.count }

    /// Refuses waiting callers, finishes the work that has begun, and ends the threads. Do not call it on a
    /// thread of the pool.
    package func stop() {
        queue.close()
        threads.join()
    }

    private enum Outcome<Result: Sendable>: Sendable {
        case done(Result)
        case refused(Refusal)
    }
}

/// One caller's work. The code that removes it from the queue, under the queue's lock, calls one of the two
/// closures exactly once, so that the continuation is resumed exactly once.
struct HashingJob: Sendable {
    let ticket: JobTicket
    /// Does the work; the closure that it returns delivers the result.
    let perform: @Sendable () -> @Sendable () -> Void
    let refuse: @Sendable (Refusal) -> Void
    /// When it joined the queue, in nanoseconds of the pool's clock. Set by the queue.
    var joined: UInt64 = 0

    init(
        ticket: JobTicket, perform: @escaping @Sendable () -> @Sendable () -> Void,
        refuse: @escaping @Sendable (Refusal) -> Void
    ) {
        self.ticket = ticket
        self.perform = perform
        self.refuse = refuse
    }
}

/// The callers that wait for a thread, first in, first out.
///
/// Safe to share: all state is under one lock, held only to add or remove a job; closures are called
/// outside it.
final class HashingQueue: @unchecked Sendable {
    private let bounds: HashingPool.Bounds
    private let clock: any MonotonicClock
    private let monitor = Monitor()
    private var waiting: [HashingJob] = []
    private var busy = 0
    private var isClosed = false
    /// The moving average of a job's nanoseconds; an estimate before the first job.
    private var averageDuration: UInt64 = 30_000_000

    init(_ bounds: HashingPool.Bounds, clock: any MonotonicClock) {
        self.bounds = bounds
        self.clock = clock
        waiting.reserveCapacity(bounds.queue + bounds.workers)
    }

    var count: Int { monitor.withLock { waiting.count } }

    /// Queues the job, or refuses it before returning.
    func add(_ job: HashingJob) {
        let refusal: Refusal? = monitor.withLock {
            guard !isClosed else { return stopping }
            guard job.ticket.state != .cancelled else { return cancelled }
            // A free thread that has not taken its job yet counts for one more place.
            guard waiting.count < bounds.queue + max(bounds.workers - busy, 0) else {
                return Refusal(.unavailable, detail: "the hashing queue is full", retryAfter: retryAfter)
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

    /// Removes the job if it has not begun; if it has not been added yet, ``add(_:)`` will refuse it.
    func cancel(_ ticket: JobTicket) {
        let job: HashingJob? = monitor.withLock {
            let state = ticket.state
            if state != .taken { ticket.state = .cancelled }
            guard state == .queued, let place = waiting.firstIndex(where: { $0.ticket === ticket }) else {
                return nil
            }
            return waiting.remove(at: place)
        }
        job?.refuse(cancelled)
    }

    /// Serves jobs until the queue is closed; each thread runs this once.
    func serve() {
        HashingQueue.lowerThreadPriority()
        while let next = take() {
            switch next {
            case .expired(let job, let refusal): job.refuse(refusal)
            case .due(let job):
                let began = clock.nanoseconds
                let handOver = job.perform()
                finished(after: clock.nanoseconds &- began)
                handOver()
            }
        }
    }

    /// Lowers the priority of the calling thread, and of no other, below that of the event loops, so that a
    /// flood of logins gets the CPU time that requests leave. Source: setpriority(2), "C library/kernel
    /// differences".
    private static func lowerThreadPriority() {
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
    }

    func close() {
        let rest = monitor.withLock {
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
        /// The job has waited longer than allowed.
        case expired(HashingJob, Refusal)
    }

    /// Waits for a job; nil when the queue is closed.
    private func take() -> Next? {
        monitor.withLock {
            while waiting.isEmpty, !isClosed { monitor.wait() }
            guard !waiting.isEmpty else { return nil }
            let job = waiting.removeFirst()
            job.ticket.state = .taken
            let waited = clock.nanoseconds &- job.joined
            guard waited <= UInt64(bounds.patience) * 1_000_000 else {
                return .expired(
                    job, Refusal(.unavailable, detail: "waited too long to be hashed", retryAfter: retryAfter)
                )
            }
            busy += 1
            return .due(job)
        }
    }

    private func finished(after duration: UInt64) {
        monitor.withLock {
            busy -= 1
            averageDuration = (averageDuration / 8) * 7 + duration / 8
        }
    }

    /// The whole seconds until the callers that now wait are served, from 1 to 60.
    private var retryAfter: Int {
        let ahead = UInt64(waiting.count + busy) * averageDuration / UInt64(bounds.workers)
        return Int(min(max((ahead + 999_999_999) / 1_000_000_000, 1), 60))
    }

    private var stopping: Refusal { Refusal(.unavailable, detail: "the server is stopping", retryAfter: 1) }
    private var cancelled: Refusal { Refusal(.unavailable, detail: "the caller left") }
}

/// A monotonic clock, passed as an argument so that tests control it.
package protocol MonotonicClock: Sendable {
    /// Nanoseconds from an arbitrary start.
    var nanoseconds: UInt64 { get }
}

/// The machine's monotonic clock, which changes of the system time do not affect.
package struct SystemMonotonicClock: MonotonicClock {
    package init() {}

    package var nanoseconds: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
