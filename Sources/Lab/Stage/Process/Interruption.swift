import Dispatch
import Glibc
import Synchronization

/// What has to be gone when somebody ends a run in the middle: children and folders.
package enum Interruption {
    private struct Leftovers {
        var processes: Set<pid_t> = []
        var folders: Set<String> = []
    }

    private static let leftovers = Mutex(Leftovers())

    package static func willRun(_ process: pid_t) { leftovers.withLock { _ = $0.processes.insert(process) } }

    package static func didEnd(_ process: pid_t) { leftovers.withLock { _ = $0.processes.remove(process) } }

    static func willFill(_ folder: String) { leftovers.withLock { _ = $0.folders.insert(folder) } }

    static func didRemove(_ folder: String) { leftovers.withLock { _ = $0.folders.remove(folder) } }

    /// From now on SIGINT, SIGTERM and SIGHUP end what is left, and then this process with 128 and the signal's number. Call before any
    /// thread is started: a thread inherits what is blocked.
    package static func arm() {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        let waited = set
        DispatchQueue(label: "interruption").async {
            var (set, number) = (waited, Int32(0))
            guard sigwait(&set, &number) == 0 else { return }
            endWhatIsLeft()
            exit(128 + number)
        }
    }

    /// Nothing, where every stage was struck; else what an error kept from being ended.
    package static func endWhatIsLeft() {
        let left = leftovers.withLock { $0 }
        for process in left.processes { kill(process, SIGKILL) }
        for folder in left.folders { Files.removeFolder(folder) }
    }
}
