import Dispatch

/// Where calls that block their thread are made, one after the other: a disk, a keyring, a person. The
/// threads that tasks run on are few, and one that waits there keeps others from going on.
package struct BlockingWorkQueue: Sendable {
    private let queue: DispatchQueue

    package init(_ label: String) { queue = DispatchQueue(label: label) }

    /// What `work` gives. It runs to its end, whether the task is cancelled or not.
    package func run<Value: Sendable>(
        _ work: @escaping @Sendable () -> Result<Value, VaultError>
    ) async throws(VaultError) -> Value {
        let result = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: work()) }
        }
        return try result.get()
    }

    /// On a thread of this line: what a task answers, for back ends that can only be asked, and answered, at
    /// once.
    package static func wait<Value: Sendable>(for answer: @escaping @Sendable () async -> Value) -> Value? {
        let slot = ResultSlot<Value>()
        Task { slot.put(await answer()) }
        return slot.take()
    }
}

/// Runs calls to hardware one at a time on a thread of their own, and waits for each a bounded time.
///
/// A driver can block a call for ever, and no call can be taken back: after the deadline its caller is told,
/// and the thread is left to it. While it lasts, later callers wait for their turn, and give up at their own
/// deadlines.
package struct DeadlineQueue: Sendable {
    private let patience: DispatchTimeInterval
    private let turn = DispatchSemaphore(value: 1)
    private let queue: DispatchQueue

    package init(_ label: String, patience: Duration) {
        let parts = patience.components
        let milliseconds = parts.seconds * 1_000 + parts.attoseconds / 1_000_000_000_000_000
        self.patience = .milliseconds(Int(clamping: milliseconds))
        queue = DispatchQueue(label: label)
    }

    /// Nil where `work` has not ended by then; its result is dropped.
    package func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) -> Value? {
        let deadline = DispatchTime.now() + patience
        guard turn.wait(timeout: deadline) == .success else { return nil }
        let slot = ResultSlot<Value>()
        queue.async {
            slot.put(work())
            turn.signal()
        }
        return slot.take(until: deadline)
    }
}

/// Hands one value from the thread that makes it to one thread that waits for it.
///
/// Safe to share: `value` is written once, before the signal, and read only after a wait that the signal has
/// ended, which orders the two.
final class ResultSlot<Value: Sendable>: @unchecked Sendable {
    private var value: Value?
    private let isThere = DispatchSemaphore(value: 0)

    /// Called once.
    func put(_ value: Value) {
        self.value = value
        isThere.signal()
    }

    /// Called once. Blocks the thread; nil where the value is not there by `deadline`.
    func take(until deadline: DispatchTime = .distantFuture) -> Value? {
        isThere.wait(timeout: deadline) == .success ? value : nil
    }
}
