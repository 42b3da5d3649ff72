import CountersignHTTP

/// How an insertion into a shared replay guard ended.
enum InsertionOutcome: Sendable, Equatable {
    case inserted
    case present
    /// The reason why it is not known whether the entry was inserted, or why it was not.
    case failed(String)
}

/// The insertions of a loop that wait for their outcome, the oldest first. Confined to the loop.
///
/// Every insertion ends within ``patience``: the owner ends all of them when ``isOverdue`` is true.
struct InsertionQueue<Entry> {
    struct Waiter {
        let entry: Entry
        fileprivate let continuation: UnsafeContinuation<InsertionOutcome, Never>
        /// Nanoseconds of the monotonic clock.
        fileprivate let deadline: Int64
    }

    static var timerMilliseconds: Int { 10 }
    static var most: Int { 4_096 }

    /// Milliseconds for an insertion, beside at most ``timerMilliseconds`` until that is noticed.
    let patience: Int
    private var waiters: [Waiter] = []
    private var first = 0

    init(patience: Int) { self.patience = patience }

    var count: Int { waiters.count - first }

    /// The insertions in the order in which they came.
    var waiting: ArraySlice<Waiter> { waiters[first...] }

    /// False if too many wait; then nothing was appended.
    mutating func append(
        _ entry: Entry, resuming continuation: UnsafeContinuation<InsertionOutcome, Never>
    ) -> Bool {
        guard count < Self.most else { return false }
        let deadline = EventLoop.nanoseconds() + Int64(patience) * 1_000_000
        waiters.append(Waiter(entry: entry, continuation: continuation, deadline: deadline))
        return true
    }

    /// Ends the oldest insertion; false if none waits.
    mutating func endFirst(_ outcome: InsertionOutcome) -> Bool {
        guard first < waiters.count else { return false }
        let waiter = waiters[first]
        first += 1
        if first == waiters.count {
            waiters.removeAll(keepingCapacity: true)
            first = 0
        } else if first > Self.most {
            waiters.removeFirst(first)
            first = 0
        }
        waiter.continuation.resume(returning: outcome)
        return true
    }

    mutating func endAll(because reason: String) {
        let ended = waiters[first...]
        waiters = []
        first = 0
        for waiter in ended { waiter.continuation.resume(returning: .failed(reason)) }
    }

    /// Whether the oldest insertion has waited for longer than ``patience``.
    var isOverdue: Bool { first < waiters.count && waiters[first].deadline <= EventLoop.nanoseconds() }
}
