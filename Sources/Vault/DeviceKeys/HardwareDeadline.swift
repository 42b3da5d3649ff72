import Dispatch

/// Runs calls to hardware one at a time on a thread of their own, and waits for each a bounded time.
///
/// A driver can block a call for ever, and no call can be taken back: after the deadline its caller is told,
/// and the thread is left to it. While it lasts, later callers wait for their turn, and give up at their own
/// deadlines.
package struct HardwareDeadline: Sendable {
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
        let slot = Slot<Value>()
        queue.async {
            slot.value = work()
            slot.isThere.signal()
            turn.signal()
        }
        return slot.isThere.wait(timeout: deadline) == .success ? slot.value : nil
    }

    /// Written before the signal and read after a wait that succeeded, which orders the two.
    private final class Slot<Value: Sendable>: @unchecked Sendable {
        var value: Value?
        let isThere = DispatchSemaphore(value: 0)
    }
}
