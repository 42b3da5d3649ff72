import Dispatch

/// Where calls that block their thread are made, one after the other: a disk, a keyring, a person. The threads that tasks run on are
/// few, and one that waits there keeps others from going on.
package struct BlockingLine: Sendable {
    private let queue: DispatchQueue

    package init(_ label: String) { queue = DispatchQueue(label: label) }

    /// What `work` gives. It runs to its end, whether the task is cancelled or not.
    package func run<Value: Sendable>(
        _ work: @escaping @Sendable () -> Result<Value, VaultProblem>
    ) async throws(VaultProblem) -> Value {
        let result = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: work()) }
        }
        return try result.get()
    }

    /// On a thread of this line: what a task answers, for back ends that can only be asked, and answered, at once.
    package static func wait<Value: Sendable>(for answer: @escaping @Sendable () async -> Value) -> Value? {
        let slot = Slot<Value>()
        Task {
            slot.value = await answer()
            slot.isThere.signal()
        }
        slot.isThere.wait()
        return slot.value
    }

    /// Written before the signal and read after the wait, which is what orders the two.
    private final class Slot<Value: Sendable>: @unchecked Sendable {
        var value: Value?
        let isThere = DispatchSemaphore(value: 0)
    }
}
