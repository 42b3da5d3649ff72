import CountersignSchemes
import Glibc

/// Workspaces between requests. A verdict that waits for a store keeps its own, so two never share one.
///
/// Safe to share: `idle` is touched under the lock. Each loop has a gate of its own, so nobody contends for it.
final class WorkspacePool: @unchecked Sendable {
    /// Safe to hand over: between `take` and `put(back:)` one request alone has it.
    final class Lease: @unchecked Sendable {
        var space = Workspace()
    }

    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private var idle: [Lease] = []

    init() {
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        idle.reserveCapacity(WorkspacePool.kept)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    func take() -> Lease {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return idle.popLast() ?? Lease()
    }

    func put(back lease: Lease) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        if idle.count < WorkspacePool.kept { idle.append(lease) }
    }

    /// More than this are let go: a burst must not hold its memory for ever.
    private static let kept = 64
}
