import CountersignMemory
import CountersignThreads
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
        do {
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
                    perform: {
                        let result = work()
                        // Resumes the caller after the thread is counted as free, so that the next caller
                        // does not find it busy.
                        return { waiting.resume(returning: .done(result)) }
                    },
                    refuse: { waiting.resume(returning: .refused($0)) })
                queue.add(job, ticket: ticket)
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
    package var waiting: Int { queue.waiting }

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

/// One caller's work. The code that takes it from the queue calls one of the two closures exactly once, so
/// that the continuation is resumed exactly once.
private struct HashingJob: Sendable {
    /// Does the work; the closure that it returns delivers the result.
    let perform: @Sendable () -> @Sendable () -> Void
    let refuse: @Sendable (Refusal) -> Void
    /// When it joined the queue, in nanoseconds of the pool's clock. Set by the queue.
    var joined: UInt64 = 0

    init(
        perform: @escaping @Sendable () -> @Sendable () -> Void, refuse: @escaping @Sendable (Refusal) -> Void
    ) {
        self.perform = perform
        self.refuse = refuse
    }
}

/// The callers that wait for a thread, none longer than the pool's patience.
private final class HashingQueue: Sendable {
    private let bounds: HashingPool.Bounds
    private let clock: any MonotonicClock
    private let jobs: BoundedQueue<HashingJob>
    /// The moving average of a job's nanoseconds; an estimate before the first job.
    private let averageDuration = Locked<UInt64>(30_000_000)

    init(_ bounds: HashingPool.Bounds, clock: any MonotonicClock) {
        self.bounds = bounds
        self.clock = clock
        jobs = BoundedQueue(bound: bounds.queue, workers: bounds.workers)
    }

    var waiting: Int { jobs.load.waiting }

    /// Queues the job, or refuses it before returning.
    func add(_ job: HashingJob, ticket: JobTicket) {
        var job = job
        job.joined = clock.nanoseconds
        switch jobs.add(job, ticket: ticket) {
        case .queued: break
        case .closed: job.refuse(HashingQueue.stopping)
        case .cancelled: job.refuse(HashingQueue.cancelled)
        case .full(let load):
            job.refuse(
                Refusal(.unavailable, detail: "the hashing queue is full", retryAfter: retryAfter(load)))
        }
    }

    func cancel(_ ticket: JobTicket) { jobs.cancel(ticket)?.refuse(HashingQueue.cancelled) }

    /// Serves jobs until the queue is closed; each thread runs this once.
    func serve() {
        HashingQueue.lowerThreadPriority()
        while let job = jobs.take().first {
            let began = clock.nanoseconds
            guard began &- job.joined <= UInt64(bounds.patience) * 1_000_000 else {
                jobs.didFinish()
                job.refuse(
                    Refusal(
                        .unavailable, detail: "waited too long to be hashed",
                        retryAfter: retryAfter(jobs.load)))
                continue
            }
            let handOver = job.perform()
            let duration = clock.nanoseconds &- began
            averageDuration.with { $0 = ($0 / 8) * 7 + duration / 8 }
            jobs.didFinish()
            handOver()
        }
    }

    /// Lowers the priority of the calling thread, and of no other, below that of the event loops, so that a
    /// flood of logins gets the CPU time that requests leave. Source: setpriority(2), "C library/kernel
    /// differences".
    private static func lowerThreadPriority() {
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
    }

    func close() { for job in jobs.closeAndRemoveAll() { job.refuse(HashingQueue.stopping) } }

    /// The whole seconds until the callers that now wait are served, from 1 to 60.
    private func retryAfter(_ load: BoundedQueue<HashingJob>.Load) -> Int {
        let ahead = UInt64(load.waiting + load.busy) * averageDuration.with { $0 } / UInt64(bounds.workers)
        return Int(min(max((ahead + 999_999_999) / 1_000_000_000, 1), 60))
    }

    private static let stopping = Refusal(.unavailable, detail: "the server is stopping", retryAfter: 1)
    private static let cancelled = Refusal(.unavailable, detail: "the caller left")
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
