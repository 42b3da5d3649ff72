import CountersignWire

/// Group commit: one thread that takes all changes that wait and makes them durable with one wait for the disk. While it waits,
/// the next ones gather; so each wait is shared by as many as there are, and nobody is made to wait for more to come.
///
/// Everything is bounded: callers that wait, and changes that share a transaction. `SQLite` has one writer at a time anyway; here
/// it never is a loop.
package final class GroupWriter: StoreWriter {
    package struct Bounds: Sendable {
        /// Changes that may wait.
        package var waiting: Int
        /// Changes that one transaction may have: while it runs, other processes cannot write.
        package var together: Int

        package init(waiting: Int = 4_096, together: Int = 512) {
            self.waiting = max(waiting, 1)
            self.together = max(together, 1)
        }
    }

    private let queue: WriteQueue
    private let threads: Threads

    /// Starts the thread, to which `store` then belongs: a connection of its own, so that who reads does not
    /// wait behind a disk. `note` is told what operators should know, and `didFail` each time that changes
    /// could not be made durable, from that thread.
    package init(
        _ store: any Store, _ bounds: Bounds = Bounds(), note: @escaping @Sendable (String) -> Void = { _ in },
        didFail: @escaping @Sendable () -> Void = {}
    ) throws(Fault) {
        let queue = WriteQueue(bounds)
        self.queue = queue
        threads = try Threads(1, "to write on") { WriteLoop(queue, store, note, didFail: didFail).run() }
    }

    /// Lets the thread go, once it has written what waits, without waiting for it. ``stop()`` is the orderly way.
    deinit { queue.close() }

    nonisolated(nonsending) package func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(Fault) -> Result
    ) async throws(Refusal) -> Result {
        let ticket = Ticket()
        let queue = queue
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiting: UnsafeContinuation<WriteOutcome<Result>, Never>) in
                let result = WriteResult<Result>()
                queue.add(
                    WriteJob(
                        ticket: ticket, change: { (store) throws(Fault) in result.value = try change(store) },
                        end: { waiting.resume(returning: result.outcome(after: $0)) }))
            }
        } onCancel: {
            queue.cancel(ticket)
        }
        switch outcome {
        case .written(let result): return result
        case .refused(let refusal): throw refusal
        }
    }

    package func writeLater(_ change: @escaping @Sendable (any Store) throws(Fault) -> Void) {
        queue.add(WriteJob(ticket: Ticket(), change: change, end: { _ in }))
    }

    /// Changes that have not begun, for the metrics.
    package var waiting: Int { queue.count }

    /// Refuses what comes from now on, writes what waits, and ends the thread. Not from that thread.
    package func stop() {
        queue.close()
        threads.join()
    }
}

enum WriteOutcome<Result: Sendable>: Sendable {
    case written(Result)
    case refused(Refusal)
}

/// What a change answered, on its way to who waits for it. Safe to share: the writer's thread sets it, and reads it before it
/// resumes the caller.
private final class WriteResult<Result: Sendable>: @unchecked Sendable {
    var value: Result?

    func outcome(after refusal: Refusal?) -> WriteOutcome<Result> {
        if let refusal { return .refused(refusal) }
        guard let value else { return .refused(Refusal(.unavailable, "the store did not make the change")) }
        return .written(value)
    }
}
