import CountersignMemory
import CountersignWire
import Glibc

/// Threads for work that keeps a core or a disk busy, or that waits. They are POSIX threads and not tasks:
/// Swift's own pool has one thread per core, and a thread that blocks there serves nothing else. They take
/// none of ``MainThreadSignals``, whenever they were started.
package final class WorkerThreads: Sendable {
    private final class ThreadBody: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Filled in `init`; the first ``join()`` empties it.
    private let threads = Locked<[pthread_t]>([])

    /// Starts `count` threads that each run `life` once. `purpose` completes the error message if a thread
    /// cannot be started ("to hash on"); the threads that were started are then detached.
    package init(
        _ count: Int = 1, purpose: String, body life: @escaping @Sendable () -> Void
    ) throws(OperationalError) {
        let life = ThreadBody(life)
        for _ in 0..<count {
            var thread = pthread_t()
            let retained = Unmanaged.passRetained(life)
            let failure = MainThreadSignals.blocked {
                pthread_create(
                    &thread, nil,
                    { context in
                        guard let context else { return nil }
                        Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run()
                        return nil
                    }, retained.toOpaque())
            }
            guard failure == 0 else {
                retained.release()
                throw OperationalError(
                    .failed,
                    message: "cannot start a thread \(purpose): \(String(cString: strerror(failure)))")
            }
            threads.with { $0.append(thread) }
        }
    }

    /// Threads that were not joined end by themselves when their body returns.
    deinit { for thread in threads.with({ $0 }) { pthread_detach(thread) } }

    /// Waits for the threads to end. Must not be called on one of them.
    package func join() {
        let ending = threads.with { threads in
            let ending = threads
            threads = []
            return ending
        }
        for thread in ending { pthread_join(thread, nil) }
    }
}

/// The signals that a server's main thread waits for. A thread that does not block them takes one while the
/// main thread is busy, and the signal then ends the process.
package enum MainThreadSignals {
    package static let numbers = [SIGTERM, SIGINT, SIGHUP, SIGUSR1]

    package static var all: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        return set
    }

    /// Blocks them in the calling thread and in the threads that it starts while `body` runs.
    static func blocked<Result>(_ body: () -> Result) -> Result {
        var (all, former) = (all, sigset_t())
        pthread_sigmask(SIG_BLOCK, &all, &former)
        defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
        return body()
    }
}
