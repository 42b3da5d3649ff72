import CountersignWire
import Glibc

/// The pool's threads. POSIX threads and not tasks: Swift's own pool has a thread a core, and a core that hashes would be
/// one that serves nothing else. Safe to share: `threads` is filled before anybody else has this, and emptied under the
/// lock.
final class HashingThreads: @unchecked Sendable {
    /// Set in `init`; taken away by the first ``join()``, under the lock.
    private var threads: [pthread_t] = []
    private let monitor = Monitor()

    init(_ count: Int, serving queue: HashingQueue) throws(Fault) {
        for _ in 0..<count {
            var thread = pthread_t()
            let retained = Unmanaged.passRetained(queue)
            let failure = pthread_create(
                &thread, nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<HashingQueue>.fromOpaque(context).takeRetainedValue().serve()
                    return nil
                }, retained.toOpaque())
            guard failure == 0 else {
                retained.release()
                queue.close()
                throw Fault(.failed, "cannot start a thread to hash on: \(String(cString: strerror(failure)))")
            }
            threads.append(thread)
        }
    }

    /// Threads that nobody joined end by themselves, once their queue is closed.
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
