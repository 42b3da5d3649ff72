import Glibc

/// The signals that a server's main thread waits for. A thread that does not block them takes one whenever the
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
