import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire
import Glibc

/// Listening sockets that a service manager has opened for this process. Those named `admin` are for
/// administrators, all others for clients. Source: sd_listen_fds(3), systemd.socket(5).
struct PassedSockets {
    private static let first: Int32 = 3
    /// A manager passes a few; a larger number is a mistake.
    private static let most = 256
    private static let administration = "admin"

    /// Sockets that listen on the addresses of their settings.
    struct Checked {
        var clients: [FileDescriptor] = []
        var administration: [FileDescriptor] = []
    }

    private let names: [String]

    /// Nil if none were passed to the process `processID`.
    init?(environment: [String: String], processID: pid_t) {
        guard environment["LISTEN_PID"] == String(processID),
            let count = environment["LISTEN_FDS"].flatMap({ Int($0) }),
            (1...PassedSockets.most).contains(count)
        else { return nil }
        let named = (environment["LISTEN_FDNAMES"] ?? "").split(
            separator: ":", omittingEmptySubsequences: false)
        names = (0..<count).map { $0 < named.count ? String(named[$0]) : "" }
    }

    /// All of them, checked. Whatever fails, each socket is closed or belongs to the result.
    func take(listen: HostPort, admin: HostPort?) throws(OperationalError) -> Checked {
        let sockets = names.indices.map { FileDescriptor(owning: PassedSockets.first + Int32($0)) }
        var checked = Checked()
        for (name, socket) in zip(names, sockets) {
            if name == PassedSockets.administration {
                guard let admin else {
                    throw OperationalError(
                        .usage, message: "the service manager passes a socket named admin, but --admin is off"
                    )
                }
                try PassedSockets.prepare(socket, at: admin, setting: "--admin")
                checked.administration.append(socket)
            } else {
                try PassedSockets.prepare(socket, at: listen, setting: "--listen")
                checked.clients.append(socket)
            }
        }
        return checked
    }

    private static func prepare(
        _ socket: FileDescriptor, at address: HostPort, setting: String
    ) throws(OperationalError) {
        let wanted: [SocketAddress]
        do {
            wanted = try SocketAddress.resolve(host: address.host, port: Int(address.port))
        } catch {
            throw OperationalError(.usage, message: "\(setting): \(error.description)")
        }
        var isListening: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard wanted.contains(where: { $0.isListened(by: socket.number) }),
            getsockopt(socket.number, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &length) == 0, isListening == 1
        else {
            throw OperationalError(
                .usage,
                message:
                    "the service manager passes a socket that does not listen at \(address): expected the "
                    + "address of \(setting) in the socket unit's ListenStream=")
        }
        _ = fcntl(socket.number, F_SETFD, FD_CLOEXEC)
        _ = fcntl(socket.number, F_SETFL, fcntl(socket.number, F_GETFL) | O_NONBLOCK)
    }
}
