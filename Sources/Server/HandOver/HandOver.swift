import CountersignMemory
import CountersignHTTP
import Synchronization

/// Whether another process judges requests of the same deployment beside this one: a predecessor that
/// finishes what it has, or a successor that has taken over.
///
/// Safe to share: atomics, and a value under its lock.
final class HandOver: Sendable {
    private let others = Atomic<Int>(0)
    private let isHandedOver = Atomic<Bool>(false)
    private let waiters = Locked<[UnsafeContinuation<Void, Never>]>([])

    /// Set while another process may judge, run keyed requests and change sessions.
    var isShared: Bool { others.load(ordering: .acquiring) > 0 }

    func begin() { others.add(1, ordering: .acquiringAndReleasing) }

    func end() {
        others.subtract(1, ordering: .acquiringAndReleasing)
        tick()
    }

    /// Set while a successor accepts connections, and this server answers only on those that it has.
    var hasHandedOver: Bool {
        get { isHandedOver.load(ordering: .acquiring) }
        set { isHandedOver.store(newValue, ordering: .releasing) }
    }

    /// Waits for a moment, of a tenth of a second or so; not at all where no other process is there.
    func pause() async {
        await withUnsafeContinuation { continuation in
            let isWaiting = waiters.with { waiting in
                guard isShared else { return false }
                waiting.append(continuation)
                return true
            }
            if !isWaiting { continuation.resume() }
        }
    }

    /// Ends the waits. By the thread that watches the other process, ten times a second.
    func tick() {
        let served = waiters.with { waiting in
            defer { waiting = [] }
            return waiting
        }
        for continuation in served { continuation.resume() }
    }
}
