import CountersignMemory
import CountersignWire
import Glibc

/// Runs work that takes long, or that waits, on threads of its own: a password hash of 20 ms, or a read of a
/// database on another machine, must not block an event loop that serves requests in microseconds. It runs
/// at most as many pieces at once as there is memory for.
///
/// Everything is bounded. Memory: ``Bounds/workers`` times the memory of one piece of work.
/// Waiting: ``Bounds/queue`` callers, none for longer than its deadline and one piece. Further callers are
/// refused at once, with a time to retry after: refusing a caller costs one lock.
package final class WorkPool: Sendable {
    package struct Bounds: Sendable {
        /// Threads, and so pieces of work that run at once. A password hash takes 19 MiB.
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

    /// What the work is, which decides the priority of the threads.
    package enum Purpose: Sendable {
        /// Hashes keep a core busy. Their threads have a lower priority than the event loops, so that a flood
        /// of logins gets the CPU time that requests leave.
        case hashing
        /// Reads of the store, for which requests wait.
        case storeReads
        /// Commands that administrators' programs run within the server.
        case administration

        var name: String {
            switch self {
            case .hashing: "hashing"
            case .storeReads: "store reads"
            case .administration: "administration"
            }
        }
    }

    package let bounds: Bounds
    private let queue: WorkQueue
    private let threads: WorkerThreads

    /// Starts the threads.
    package init(
        _ bounds: Bounds, for purpose: Purpose = .hashing, clock: any MonotonicClock = SystemMonotonicClock()
    ) throws(OperationalError) {
        self.bounds = bounds
        let queue = WorkQueue(bounds, purpose: purpose, clock: clock)
        self.queue = queue
        do {
            threads = try WorkerThreads(bounds.workers, purpose: "for \(purpose.name)") { queue.serve() }
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
    /// finished. The works of parties take turns; work without a `party` waits for no turn.
    package func run<Result: Sendable>(
        for party: String? = nil, _ work: @escaping @Sendable () -> Result
    ) async throws(Refusal) -> Result {
        let ticket = JobTicket()
        let queue = queue
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiting: UnsafeContinuation<Outcome<Result>, Never>) in
                let job = WorkJob(
                    perform: {
                        let result = work()
                        // Resumes the caller after the thread is counted as free, so that the next caller
                        // does not find it busy.
                        return { waiting.resume(returning: .done(result)) }
                    },
                    refuse: { waiting.resume(returning: .refused($0)) })
                queue.add(job, ticket: ticket, for: party)
            }
        } onCancel: {
            queue.cancel(ticket)
        }
        switch outcome {
        case .done(let result): return result
        case .refused(let refusal): throw refusal
        }
    }

    /// Runs the work; returns nil if it has not ended `milliseconds` after the call. Work that has not begun
    /// by then never begins. Work that has begun continues, because a thread cannot be stopped, and its
    /// result is dropped.
    package func run<Result: Sendable>(
        within milliseconds: Int, for party: String? = nil, _ work: @escaping @Sendable () -> Result
    ) async throws(Refusal) -> Result? {
        let end: Deadline<Result> = await withUnsafeContinuation { continuation in
            let waiting = Locked<UnsafeContinuation<Deadline<Result>, Never>?>(continuation)
            let running = Task {
                let end: Deadline<Result>
                do throws(Refusal) {
                    end = .ended(try await run(for: party, work))
                } catch {
                    end = .refused(error)
                }
                waiting.with { $0.take() }?.resume(returning: end)
            }
            Task {
                try? await Task.sleep(nanoseconds: UInt64(milliseconds) * 1_000_000)
                guard let late = waiting.with({ $0.take() }) else { return }
                running.cancel()
                late.resume(returning: .passed)
            }
        }
        switch end {
        case .ended(let result): return result
        case .refused(let refusal): throw refusal
        case .passed: return nil
        }
    }

    private enum Deadline<Result: Sendable>: Sendable {
        case ended(Result)
        case refused(Refusal)
        case passed
    }

    /// The milliseconds for which the longest running work has run; nil if none runs.
    package var longestRun: Int? { queue.longestRun }

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
private struct WorkJob: Sendable {
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
private final class WorkQueue: Sendable {
    private let bounds: WorkPool.Bounds
    private let purpose: WorkPool.Purpose
    private let clock: any MonotonicClock
    private let jobs: BoundedQueue<WorkJob>
    /// The moving average of a job's nanoseconds; an estimate before the first job.
    private let averageDuration = Locked<UInt64>(30_000_000)

    init(_ bounds: WorkPool.Bounds, purpose: WorkPool.Purpose, clock: any MonotonicClock) {
        self.bounds = bounds
        self.purpose = purpose
        self.clock = clock
        jobs = BoundedQueue(bound: bounds.queue, workers: bounds.workers)
    }

    var waiting: Int { jobs.load.waiting }

    /// When each running work began, in nanoseconds of the clock.
    private let running = Locked<[UInt64]>([])

    var longestRun: Int? {
        running.with { $0.min() }.map { Int((clock.nanoseconds &- $0) / 1_000_000) }
    }

    /// Queues the job, or refuses it before returning.
    func add(_ job: WorkJob, ticket: JobTicket, for party: String?) {
        var job = job
        job.joined = clock.nanoseconds
        switch jobs.add(job, ticket: ticket, for: party) {
        case .queued: break
        case .closed: job.refuse(WorkQueue.stopping)
        case .cancelled: job.refuse(WorkQueue.cancelled)
        case .full(let load):
            job.refuse(
                Refusal(
                    .unavailable, detail: "the queue for \(purpose.name) is full",
                    retryAfter: retryAfter(load)))
        }
    }

    func cancel(_ ticket: JobTicket) { jobs.cancel(ticket)?.refuse(WorkQueue.cancelled) }

    /// Serves jobs until the queue is closed; each thread runs this once.
    func serve() {
        if purpose == .hashing { WorkQueue.lowerThreadPriority() }
        while let job = jobs.take().first {
            let began = clock.nanoseconds
            guard began &- job.joined <= UInt64(bounds.patience) * 1_000_000 else {
                jobs.didFinish()
                job.refuse(
                    Refusal(
                        .unavailable, detail: "waited too long for \(purpose.name)",
                        retryAfter: retryAfter(jobs.load)))
                continue
            }
            running.with { $0.append(began) }
            let handOver = job.perform()
            running.with { running in
                if let place = running.firstIndex(of: began) { running.remove(at: place) }
            }
            let duration = clock.nanoseconds &- began
            averageDuration.with { $0 = ($0 / 8) * 7 + duration / 8 }
            jobs.didFinish()
            handOver()
        }
    }

    /// Lowers the priority of the calling thread, and of no other, below that of the event loops. Source:
    /// setpriority(2), "C library/kernel differences".
    private static func lowerThreadPriority() {
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
    }

    func close() { for job in jobs.closeAndRemoveAll() { job.refuse(WorkQueue.stopping) } }

    /// The whole seconds until the callers that now wait are served, from 1 to 60.
    private func retryAfter(_ load: BoundedQueue<WorkJob>.Load) -> Int {
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
