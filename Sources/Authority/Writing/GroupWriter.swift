import CountersignGate
import CountersignThreads
import CountersignWire
import Synchronization

/// The server's writer: changes wait in a queue, and those that wait together are made durable together, so
/// that one disk sync serves many. Event loops await a change and never block on the disk.
package protocol StoreWriter: Sendable {
    /// Runs `change` on the writer's thread, in isolation; returns when it is durable. Refuses with
    /// `unavailable` if the queue is full or the store fails; then nothing of the change is kept.
    func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result

    /// The same without waiting for the result. A change that cannot be written is dropped.
    func writeLater(_ change: @escaping @Sendable (any Store) throws(OperationalError) -> Void)
}

/// The most rows of a table that one transaction deletes; other writers wait for it.
private let mostExpiredRows = 500

extension StoreWriter {
    /// Deletes, in batches, upload tickets that expired before `time` and account codes that no longer count
    /// since then.
    package func forgetExpiredRows(before time: TrustedTime) {
        writeLater { (store) throws(OperationalError) in
            let tickets = try store.forgetUploadTickets(expiredBefore: time, limit: mostExpiredRows)
            let codes = try store.forgetAccountCodes(
                madeBefore: time.earlier(by: CodePace.period), limit: mostExpiredRows)
            if max(tickets, codes) == mostExpiredRows { forgetExpiredRows(before: time) }
        }
    }
}

/// Group commit: one thread takes all waiting changes and makes them durable with one disk sync. During the
/// sync the next changes gather; each sync therefore serves all that are there, and no change waits for
/// more to come.
///
/// Everything is bounded: the waiting callers, and the changes that share a transaction. SQLite allows one
/// writer at a time in any case; here it is never an event loop.
package final class GroupWriter: StoreWriter {
    package struct Bounds: Sendable {
        /// Changes that may wait.
        package var waiting: Int
        /// Changes that one transaction may contain: while it runs, other processes cannot write.
        package var together: Int

        package init(waiting: Int = 4_096, together: Int = 512) {
            self.waiting = max(waiting, 1)
            self.together = max(together, 1)
        }
    }

    private let queue: BoundedQueue<WriteJob>
    private let threads: WorkerThreads
    package let figures = StoreWriteFigures()

    /// Starts the thread, which then owns `store`: a connection of its own, so that readers do not wait for
    /// the disk. `note` receives messages for operators, and `didFail` is called each time that changes
    /// could not be made durable; both on that thread.
    package init(
        _ store: any Store, bounds: Bounds = Bounds(), note: @escaping @Sendable (String) -> Void = { _ in },
        didFail: @escaping @Sendable () -> Void = {}
    ) throws(OperationalError) {
        let queue = BoundedQueue<WriteJob>(bound: bounds.waiting)
        self.queue = queue
        let figures = figures
        threads = try WorkerThreads(purpose: "to write on") {
            WriteLoop(
                queue, takingAtMost: bounds.together, store: store, figures: figures, note: note,
                didFail: didFail
            ).run()
        }
    }

    /// Ends the thread after it has written the waiting changes, without waiting for it. ``stop()`` is the
    /// orderly way.
    deinit { queue.close() }

    package func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result {
        let ticket = JobTicket()
        let queue = queue
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiting: UnsafeContinuation<WriteOutcome<Result>, Never>) in
                let result = WriteResult<Result>()
                queue.submit(
                    WriteJob(
                        change: { (store) throws(OperationalError) in result.value = try change(store) },
                        end: { waiting.resume(returning: result.outcome(after: $0)) }),
                    ticket: ticket)
            }
        } onCancel: {
            queue.withdraw(ticket)
        }
        switch outcome {
        case .written(let result): return result
        case .refused(let refusal): throw refusal
        }
    }

    package func writeLater(_ change: @escaping @Sendable (any Store) throws(OperationalError) -> Void) {
        queue.submit(WriteJob(change: change, end: { _ in }), ticket: JobTicket())
    }

    /// Changes that have not begun, for the metrics.
    package var waiting: Int { queue.load.waiting }

    /// Refuses further changes, writes the waiting ones, and ends the thread. Do not call it on that
    /// thread.
    package func stop() {
        queue.close()
        threads.join()
    }
}

/// How long the store's transactions take, and how many of them fail. Only the writer's thread counts.
package final class StoreWriteFigures: Sendable {
    /// Each with all the changes that it makes durable.
    package let durations = DurationHistogram()
    private let failed = Atomic<Int>(0)

    package var failures: Int { failed.load(ordering: .relaxed) }

    func didWrite(in duration: Duration, isFailed: Bool) {
        durations.record(duration)
        if isFailed { failed.add(1, ordering: .relaxed) }
    }
}

enum WriteOutcome<Result: Sendable>: Sendable {
    case written(Result)
    case refused(Refusal)
}

/// The result of a change on its way to the caller.
///
/// Unchecked, because `value` has no lock: only the writer's thread sets and reads it, before it resumes the
/// caller.
private final class WriteResult<Result: Sendable>: @unchecked Sendable {
    var value: Result?

    func outcome(after refusal: Refusal?) -> WriteOutcome<Result> {
        if let refusal { return .refused(refusal) }
        guard let value else {
            return .refused(Refusal(.unavailable, detail: "the store did not make the change"))
        }
        return .written(value)
    }
}
