import CountersignWire

/// Where passwords are hashed: on threads of its own, so that a login that takes 20 ms of a core does not stop a loop
/// that serves requests of microseconds; and at most as many at once as there is memory for.
///
/// Everything is bounded. Memory: ``workers`` times what one hash takes. Waiting: ``Bounds/queue`` callers, none for
/// longer than its deadline and one hash. Beyond that a caller is refused at once, with the time after which it is worth
/// coming back: a storm of logins is turned away at the price of a lock.
package final class HashingPool: Sendable {
    package struct Bounds: Sendable {
        /// Threads, and so hashes at once. Each takes what its ``HashCost`` says: 19 MiB.
        package var workers: Int
        /// Callers that may wait besides.
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
    private let threads: Threads

    /// Starts the threads.
    package init(_ bounds: Bounds, clock: any MonotonicClock = SystemMonotonicClock()) throws(Fault) {
        self.bounds = bounds
        let queue = HashingQueue(bounds, clock)
        self.queue = queue
        do throws(Fault) {
            threads = try Threads(bounds.workers, "to hash on") { queue.serve() }
        } catch {
            queue.close()
            throw error
        }
    }

    /// Lets the threads go without waiting for them; whoever waits is refused. ``stop()`` is the orderly way.
    deinit { queue.close() }

    /// Does `work` on one of the pool's threads and hands its result back on the caller's own executor. Refused as
    /// `unavailable`, with a time to come back, where the queue is full, the wait took too long, the pool stops, or the
    /// caller's task was cancelled before the work began. Work that has begun is finished.
    package func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async throws(Refusal) -> Result {
        let ticket = Ticket()
        let queue = queue
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiting: UnsafeContinuation<Outcome<Result>, Never>) in
                let job = HashingJob(
                    ticket: ticket,
                    perform: {
                        let result = work()
                        // After the thread is counted as free, so that who comes next does not find it taken.
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

    /// Refuses whoever waits, lets what has begun end, and ends the threads. Not from a thread of the pool.
    package func stop() {
        queue.close()
        threads.join()
    }

    private enum Outcome<Result: Sendable>: Sendable {
        case done(Result)
        case refused(Refusal)
    }
}
