import CountersignAuthority
import CountersignGate
import CountersignWire
import Glibc

/// The service manager that started this process, such as systemd. Reports the server's state to it and takes
/// over listening sockets that it opened. Without a service manager, all operations do nothing. Source:
/// sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3).
package struct ServiceManager: Sendable {
    /// The environment variables that a service manager sets.
    package static let variables = [
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES",
    ]

    private let path: String?
    /// Seconds between two ``State/alive``, a third of the time after which the manager ends a silent
    /// process; nil where it does not watch.
    let watchdogInterval: Int?
    private let passedSockets: PassedSockets?

    /// `processID` is this process's: sockets may have been meant for another one, of which this one has
    /// inherited the environment.
    init(environment: [String: String], processID: pid_t = getpid()) {
        path = environment["NOTIFY_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int($0) } ?? 0
        watchdogInterval = microseconds > 0 ? max(1, microseconds / 3_000_000) : nil
        passedSockets = PassedSockets(environment: environment, processID: processID)
    }

    /// What the manager is told.
    enum State {
        /// The server accepts connections at `url`. A successor names itself, so that the manager follows it.
        case ready(url: String, processID: pid_t)
        /// The server responds, as each of its event loops does.
        case alive
        /// The last requests end, and then this process.
        case stopping

        /// The next one says the same.
        fileprivate var mayBeLost: Bool { if case .alive = self { true } else { false } }

        /// Lines of `NAME=value`.
        fileprivate var text: String {
            switch self {
            case .ready(let url, let processID): "READY=1\nMAINPID=\(processID)\nSTATUS=serving at \(url)"
            case .alive: "WATCHDOG=1"
            case .stopping: "STOPPING=1\nSTATUS=the last requests end"
            }
        }
    }

    /// Sends one datagram. A manager that cannot be reached is left alone: the server serves all the same.
    func tell(_ state: State) {
        guard let path else { return }
        ServiceManager.send(state, to: path)
    }

    /// Seconds that a manager with a full queue is waited for.
    private static let patience = 5

    private static func send(_ state: State, to path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        // Of an abstract name the first byte is 0, written as `@`.
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard name.count < room else { return }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let descriptor = socket(
            AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var patience = timeval(tv_sec: state.mayBeLost ? 0 : ServiceManager.patience, tv_usec: 1)
        setsockopt(
            descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let bytes = Array(state.text.utf8)
        let length = MemoryLayout<sockaddr_un>.size - room + name.count
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(
                    descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, socklen_t(length))
            }
        }
    }

    /// Starts to tell the manager regularly that the server is alive, as long as `isResponsive` says so; nil
    /// where the manager does not watch.
    func startWatchdog(isResponsive: @escaping @Sendable () -> Bool) throws(OperationalError) -> Ticker? {
        guard path != nil, let watchdogInterval else { return nil }
        let ticker = Ticker(every: watchdogInterval) { if isResponsive() { tell(.alive) } }
        try ticker.start()
        return ticker
    }

    /// The sockets that the manager has opened; each must listen on the address of its setting. Empty where
    /// it has opened none. Call once: the sockets belong to the result.
    func takeSockets(_ configuration: Configuration) throws(OperationalError) -> PassedSockets.Checked {
        try passedSockets?.take(listen: configuration.listen, admin: configuration.admin) ?? .init()
    }
}
