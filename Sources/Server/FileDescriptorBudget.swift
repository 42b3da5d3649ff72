import CountersignHTTP
import Glibc

/// How the process divides its file descriptors.
struct FileDescriptorBudget: Equatable {
    /// Client connections that fit besides everything else.
    var connections: Int
    /// The log line if `connections` had to be lowered; nil if all fits.
    var warning: String?

    /// For standard streams, the store, its journals, the log, key files and the resolver; and for each loop.
    private static let fixed = 64
    private static let perWorker = 6

    /// Divides `available` descriptors between `connections` client connections and `upstreams` connections
    /// to the backend. If they are too few, clients and the backend share what is left: a request needs one
    /// of each.
    init(available: Int, connections: Int, upstreams: Int, workers: Int) {
        let rest = max(2, available - FileDescriptorBudget.fixed - FileDescriptorBudget.perWorker * workers)
        // The listener admits some connections over the limit before others are closed for them.
        func withReserve(_ count: Int) -> Int { count + ConnectionRegistry.reserve(for: count) }
        let forClients = max(rest / 2, rest - upstreams)
        guard withReserve(connections) > forClients else {
            self.connections = connections
            return
        }
        var fitting = max(1, forClients * 8 / 9, forClients - ConnectionRegistry.reserve(for: .max))
        while fitting > 1, withReserve(fitting) > forClients { fitting -= 1 }
        self.connections = min(connections, fitting)
        guard self.connections < connections else { return }
        let wanted = withReserve(connections) + min(upstreams, connections) + available - rest
        warning =
            "limit-connections is \(self.connections) instead of \(connections): the process may have "
            + "\(available) open files (RLIMIT_NOFILE); \(wanted) would do"
    }
}

enum FileDescriptorLimits {
    /// Raises the soft limit of open files to the hard one, and returns it.
    static func raiseLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 256 }
        var raised = limit
        raised.rlim_cur = limit.rlim_max
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
        return Int(clamping: limit.rlim_cur)
    }

    /// Makes Swift's runtime start its threads, its timer and their descriptors now instead of at first use:
    /// if it found no descriptor later, under load, it would end the process. Blocks until that is done.
    static func startRuntime() {
        let isDone = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        sem_init(isDone, 0, 0)
        defer {
            sem_destroy(isDone)
            isDone.deallocate()
        }
        let signal = Signal(semaphore: isDone)
        Task.detached {
            try? await Task.sleep(nanoseconds: 1_000_000)
            sem_post(signal.semaphore)
        }
        while sem_wait(isDone) != 0 {}
    }

    /// Safe to send: the waiting thread keeps the semaphore alive until it was posted.
    private struct Signal: @unchecked Sendable {
        let semaphore: UnsafeMutablePointer<sem_t>
    }
}
