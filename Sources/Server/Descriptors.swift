import CountersignHTTP
import Glibc

/// How many file descriptors the process has, and what they are for.
struct DescriptorPlan: Equatable {
    /// Client connections that fit beside everything else.
    var connections: Int
    /// The line for the log where `connections` had to be lowered; nil where all fits.
    var warning: String?

    /// For standard streams, the store, its journals, the log, key files, and the resolver; and for each loop.
    private static let fixed = 64
    private static let perWorker = 6

    /// `available` descriptors for `connections` client connections and as many as `upstreams` connections to
    /// the backend. Where they are too few, clients and the backend share what is left: a request needs one
    /// of each.
    init(available: Int, connections: Int, upstreams: Int, workers: Int) {
        let rest = max(2, available - DescriptorPlan.fixed - DescriptorPlan.perWorker * workers)
        // Some connections over the limit are let in before others have given way.
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

enum Descriptors {
    /// Raises the soft limit of open files to the hard one, and answers it.
    static func raiseLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 256 }
        var raised = limit
        raised.rlim_cur = limit.rlim_max
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
        return Int(clamping: limit.rlim_cur)
    }

    /// Has Swift's runtime start what it starts at first use: threads, a timer, and their descriptors. Were
    /// it to find none left later, under load, it would end the process. Blocks until that is done.
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

    /// Safe to send: the waiting thread keeps the semaphore until it was posted.
    private struct Signal: @unchecked Sendable {
        let semaphore: UnsafeMutablePointer<sem_t>
    }
}
