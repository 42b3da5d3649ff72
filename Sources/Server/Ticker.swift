import CountersignWire
import Glibc

/// A thread that does something every so many seconds, and once more when it is stopped: for what waits for a disk, so that
/// no loop does.
///
/// Safe to share: `isStopping` is touched under the lock, `thread` by who starts and stops it.
final class Ticker: @unchecked Sendable {
    private let seconds: Int
    private let body: @Sendable () -> Void
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wakes = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isStopping = false
    private var thread: pthread_t?

    init(every seconds: Int, _ body: @escaping @Sendable () -> Void) {
        self.seconds = seconds
        self.body = body
        pthread_mutex_init(lock, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(wakes, &attributes)
    }

    deinit {
        pthread_mutex_destroy(lock)
        pthread_cond_destroy(wakes)
        lock.deallocate()
        wakes.deallocate()
    }

    func start() throws(Fault) {
        var thread = pthread_t()
        let failure = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<Ticker>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        guard failure == 0 else {
            Unmanaged.passUnretained(self).release()
            throw Fault(.failed, "cannot start a thread: \(String(cString: strerror(failure)))")
        }
        self.thread = thread
    }

    /// Lets it run once more and waits for its end.
    func stop() {
        pthread_mutex_lock(lock)
        isStopping = true
        pthread_cond_signal(wakes)
        pthread_mutex_unlock(lock)
        if let thread { pthread_join(thread, nil) }
        thread = nil
    }

    private func run() {
        var isLast = false
        while !isLast {
            isLast = pause()
            body()
        }
    }

    /// Whether it was the last one.
    private func pause() -> Bool {
        var until = timespec()
        clock_gettime(CLOCK_MONOTONIC, &until)
        until.tv_sec += seconds
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while !isStopping, pthread_cond_timedwait(wakes, lock, &until) != ETIMEDOUT {}
        return isStopping
    }
}
