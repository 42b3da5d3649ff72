import CountersignWire
import Glibc

/// Threads of our own, for what keeps a core or a disk busy. POSIX threads and not tasks: Swift's own pool has a thread a core, and
/// one that waits there is one that serves nothing else. Safe to share: `threads` is filled before anybody else has this, and
/// emptied under the lock.
final class Threads: @unchecked Sendable {
    private final class Life: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Set in `init`; taken away by the first ``join()``, under the lock.
    private var threads: [pthread_t] = []
    private let monitor = Monitor()

    /// Starts so many, each to run `life` once. `purpose` says what for, where that fails: those that were started are then let go.
    init(_ count: Int, _ purpose: String, _ life: @escaping @Sendable () -> Void) throws(Fault) {
        let life = Life(life)
        for _ in 0..<count {
            var thread = pthread_t()
            let retained = Unmanaged.passRetained(life)
            let failure = pthread_create(
                &thread, nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<Life>.fromOpaque(context).takeRetainedValue().run()
                    return nil
                }, retained.toOpaque())
            guard failure == 0 else {
                retained.release()
                throw Fault(.failed, "cannot start a thread \(purpose): \(String(cString: strerror(failure)))")
            }
            threads.append(thread)
        }
    }

    /// Threads that nobody joined end by themselves, once their life has.
    deinit { for thread in threads { pthread_detach(thread) } }

    /// Waits for the threads to end.
    func join() {
        let ending = monitor.hold {
            let ending = threads
            threads = []
            return ending
        }
        for thread in ending { pthread_join(thread, nil) }
    }
}
