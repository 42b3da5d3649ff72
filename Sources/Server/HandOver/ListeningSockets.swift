import CountersignGate
import CountersignHTTP
import CountersignWire
import Glibc

/// The sockets that a server listens on: opened, or taken over from its predecessor. Another process that has
/// them keeps them open when this one closes them. Safe to share: values under their locks.
final class ListeningSockets: Sendable {
    private let clients: Locked<[FileDescriptor]>
    private let administration: Locked<[FileDescriptor]>

    init(_ inheritance: Inheritance?) {
        clients = Locked(inheritance?.listeners ?? [])
        administration = Locked(inheritance?.adminListeners ?? [])
    }

    var listeners: [FileDescriptor] { clients.with { $0 } }
    var adminListeners: [FileDescriptor] { administration.with { $0 } }

    /// At least so many for clients, and their port. What was taken over is kept where it is for this
    /// address, and all of it: a socket from which no worker accepted would keep its share of the connections
    /// waiting.
    func open(_ address: HostPort, atLeast count: Int) throws -> (sockets: [FileDescriptor], port: Int) {
        let opened = try ListeningSockets.opened(address, listeners, atLeast: count)
        clients.with { $0 = opened }
        return (opened, SocketAddress.port(of: opened[0].number))
    }

    /// The one for administrators.
    func openAdmin(_ address: HostPort) throws -> FileDescriptor {
        let opened = try ListeningSockets.opened(address, adminListeners, atLeast: 1)
        administration.with { $0 = opened }
        return opened[0]
    }

    func close() {
        clients.with { $0 = [] }
        administration.with { $0 = [] }
    }

    private static func opened(
        _ address: HostPort, _ taken: [FileDescriptor], atLeast count: Int
    ) throws -> [FileDescriptor] {
        let wanted = try SocketAddress.resolve(host: address.host, port: Int(address.port))[0]
        guard let first = taken.first, wanted.isListened(by: first.number) else {
            return try wanted.listen(sockets: count).descriptors.map { FileDescriptor(owning: $0) }
        }
        var sockets = taken
        while sockets.count < count {
            sockets.append(FileDescriptor(owning: try SocketAddress.listen(beside: first.number)))
        }
        return sockets
    }
}

extension FileDescriptor {
    /// One of its own for who closes it. Source: fcntl(2), F_DUPFD_CLOEXEC.
    func copy() throws(Fault) -> Int32 {
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { throw Fault.system("a listening socket", code: errno) }
        return copy
    }
}
