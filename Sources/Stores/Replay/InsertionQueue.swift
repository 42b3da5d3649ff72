import CountersignHTTP
import Synchronization

/// How an insertion into a shared replay guard ended.
enum InsertionOutcome: Sendable, Equatable {
    case inserted
    case present
    /// The reason why it is not known whether the entry was inserted, or why it was not.
    case failed(String)
}

/// The insertions of a loop that wait for their outcome, the oldest first: what all loop clients share.
/// Confined to the loop, and safe to share for that reason; `isUsable` is atomic.
///
/// Every insertion ends within the patience: the client ends all of them when ``isOverdue`` is true. All
/// insertions of a turn are sent together.
class InsertionQueue<Grant: ReplayGrant, Entry>: @unchecked Sendable {
    struct Waiter {
        let entry: Entry
        fileprivate let continuation: UnsafeContinuation<InsertionOutcome, Never>
        /// Nanoseconds of the monotonic clock.
        fileprivate let deadline: Int64
    }

    /// Until it is noticed that an insertion is overdue.
    private static var timerMilliseconds: Int { 10 }
    private static var most: Int { 4_096 }

    final let loop: EventLoop
    final let grants: ReplayGrants<Grant>
    /// Called when the server may have lost entries, is another one, or is to be connected to.
    final let suspect: @Sendable () -> Void
    final let isUsable = Atomic(false)
    private final var timer: LoopTimer?
    private final var isSendScheduled = false
    private final var waiters: [Waiter] = []
    private final var first = 0

    init(on loop: EventLoop, grants: ReplayGrants<Grant>, suspect: @escaping @Sendable () -> Void) {
        (self.loop, self.grants, self.suspect) = (loop, grants, suspect)
        timer = LoopTimer(loop, milliseconds: Self.timerMilliseconds) { [unowned self] in endOverdue() }
    }

    final var isConnected: Bool { isUsable.load(ordering: .relaxed) }

    /// Sends the insertions of a turn.
    func send() {}

    /// Called every few milliseconds while insertions wait.
    func endOverdue() {}

    final func scheduleSend() {
        guard !isSendScheduled else { return }
        isSendScheduled = true
        loop.perform { [self] in
            isSendScheduled = false
            send()
        }
    }

    /// The insertions in the order in which they came.
    final var waiting: ArraySlice<Waiter> { waiters[first...] }

    /// False if too many wait; then the continuation was resumed.
    final func append(
        _ entry: Entry, resuming continuation: UnsafeContinuation<InsertionOutcome, Never>
    ) -> Bool {
        guard waiters.count - first < Self.most else {
            continuation.resume(returning: .failed("too many insertions wait for \(grants.kind.title)"))
            return false
        }
        let deadline = EventLoop.nanoseconds() + Int64(grants.patience) * 1_000_000
        waiters.append(Waiter(entry: entry, continuation: continuation, deadline: deadline))
        timer?.start()
        return true
    }

    /// Ends the oldest insertion; false if none waits.
    final func endFirst(_ outcome: InsertionOutcome) -> Bool {
        guard first < waiters.count else { return false }
        let waiter = waiters[first]
        first += 1
        if first == waiters.count {
            waiters.removeAll(keepingCapacity: true)
            first = 0
            timer?.stop()
        } else if first > Self.most {
            waiters.removeFirst(first)
            first = 0
        }
        waiter.continuation.resume(returning: outcome)
        return true
    }

    final func endAll(because reason: String) {
        let ended = waiting
        (waiters, first) = ([], 0)
        for waiter in ended { waiter.continuation.resume(returning: .failed(reason)) }
    }

    /// Whether the oldest insertion has waited for longer than the patience. Stops the timer if none waits.
    final var isOverdue: Bool {
        if let waiter = waiting.first { return waiter.deadline <= EventLoop.nanoseconds() }
        timer?.stop()
        return false
    }

    /// Why insertions end that the server has not answered in time.
    final var lateness: String { "\(grants.kind.title) took longer than \(grants.patience) ms" }
}
