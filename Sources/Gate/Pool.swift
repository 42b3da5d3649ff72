import CountersignSchemes
import Glibc

/// One request's workspace, while it is judged. A verdict that waits for a store keeps its own, so two never share one.
///
/// Safe to hand over: between `take` and `put(back:)` one request alone has it.
final class WorkspaceLease: @unchecked Sendable {
    var space = Workspace()
}

/// Objects between requests, so that a verdict allocates none.
///
/// Safe to share: `idle` is touched under the lock. Each loop has a gate of its own, so no other thread
/// contends for it.
final class Pool<Object: AnyObject & Sendable>: @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private var idle: [Object] = []
    private let make: @Sendable () -> Object
    /// More than this are let go: a burst must not hold its memory for ever.
    private let most: Int

    init(most: Int, _ make: @escaping @Sendable () -> Object) {
        self.most = most
        self.make = make
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        idle.reserveCapacity(most)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    func take() -> Object {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return idle.popLast() ?? make()
    }

    func put(back object: Object) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        if idle.count < most { idle.append(object) }
    }
}
