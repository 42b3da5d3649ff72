import CountersignThreads
import Glibc

/// Signals, taken one at a time by the main thread; all other threads block them.
enum Signals {
    enum Event { case drain, reload, none }

    /// Wakes the main thread from any other thread, to look at changes.
    static func wake() { kill(getpid(), SIGUSR1) }

    /// Call before libraries start threads, which inherit the blocked signals; ``WorkerThreads`` block them
    /// anyway.
    static func block() {
        var set = MainThreadSignals.all
        pthread_sigmask(SIG_BLOCK, &set, nil)
        // A peer that goes away causes a write error, not the end of the process.
        signal(SIGPIPE, SIG_IGN)
    }

    /// The next signal.
    static func next() -> Event {
        var set = MainThreadSignals.all
        var number: Int32 = 0
        return sigwait(&set, &number) == 0 ? meaning(of: number) : .none
    }

    /// The next signal, or none within `milliseconds`.
    static func next(milliseconds: Int) -> Event {
        var set = MainThreadSignals.all
        var patience = timespec(tv_sec: milliseconds / 1_000, tv_nsec: milliseconds % 1_000 * 1_000_000)
        return meaning(of: sigtimedwait(&set, nil, &patience))
    }

    private static func meaning(of number: Int32) -> Event {
        switch number {
        case SIGTERM, SIGINT: .drain
        case SIGHUP: .reload
        default: .none
        }
    }
}
