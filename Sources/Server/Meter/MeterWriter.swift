import CountersignAuthority
import CountersignGate
import CountersignWire
import Glibc

/// The thread that writes the meter down every two seconds, so that no loop waits for a disk. `kill -9` loses at most
/// what was counted since.
///
/// Safe to share: `isStopping` is touched under the lock, the ledger by its thread alone.
final class MeterWriter: @unchecked Sendable {
    private static let seconds = 2

    private var ledger: MeterLedger
    private let log: EventLog?
    private let clock: any TimeSource
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let wakes = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isStopping = false
    private var thread: pthread_t?

    init(_ ledger: MeterLedger, log: EventLog?, clock: any TimeSource) {
        self.ledger = ledger
        self.log = log
        self.clock = clock
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
                Unmanaged<MeterWriter>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        guard failure == 0 else { throw Fault(.failed, "cannot start the meter's thread") }
        self.thread = thread
    }

    /// Writes what is left and ends the thread. After the loops have ended, so that nothing is counted behind it.
    func stop() {
        pthread_mutex_lock(lock)
        isStopping = true
        pthread_cond_signal(wakes)
        pthread_mutex_unlock(lock)
        if let thread { pthread_join(thread, nil) }
    }

    private func run() {
        var isLast = false
        while !isLast {
            isLast = pause()
            do throws(Fault) { try ledger.write(at: clock.now) } catch { log?.note("meter", error.message) }
        }
    }

    /// Whether it was the last one.
    private func pause() -> Bool {
        var until = timespec()
        clock_gettime(CLOCK_MONOTONIC, &until)
        until.tv_sec += MeterWriter.seconds
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while !isStopping, pthread_cond_timedwait(wakes, lock, &until) != ETIMEDOUT {}
        return isStopping
    }
}
