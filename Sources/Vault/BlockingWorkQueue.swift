import Dispatch

/// Where calls that block their thread are made, one after the other: a disk, a keychain, a person. The
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

    /// Called once. Blocks the thread until the value is there.
    func take() -> Value? {
        isThere.wait()
        return value
    }
}
