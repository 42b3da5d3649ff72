import CountersignWire
import Glibc

/// A thread that runs a body at an interval, and once more when it is stopped: for work that waits for a
/// disk, so that no loop does.
///
/// Safe to share: `isStopping` is touched under the lock; only the thread that starts and stops it touches
/// `thread`.
final class Ticker: @unchecked Sendable {
    private let seconds: Int
    private let body: @Sendable () -> Void
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wakes = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isStopping = false
    private var thread: pthread_t?

    init(every seconds: Int, body: @escaping @Sendable () -> Void) {
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

    func start() throws(OperationalError) {
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
            throw OperationalError(
                .failed, message: "cannot start a thread: \(String(cString: strerror(failure)))")
        }
        self.thread = thread
    }

    /// Makes the body run once more and waits for the thread's end.
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

    /// Waits for the interval or for a stop; whether it was a stop.
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
