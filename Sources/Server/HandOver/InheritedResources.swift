import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire
import Glibc

/// What a server takes over from the running one: its listening sockets, the replay file with its locks, and
/// the login limits. Keyed requests need no hand-over: until the other server has ended, both use the same
/// log, or the same database. Source: docs/decisions/0034-restart.md.
final class InheritedResources {
    /// Listening sockets for clients and for administrators.
    var listeners: [FileDescriptor] = []
    var adminListeners: [FileDescriptor] = []
    var replay: ReplayFileHandover?
    var limits: FileDescriptor?
    /// The node id of the other server.
    private(set) var node: String?
    /// Whether the other server keeps keyed requests in the log of the data folder.
    private var hasRequestLog = false
    let connection: ControlConnection

    private static let patience = 60_000

    private init(_ connection: ControlConnection) { self.connection = connection }

    /// Asks the server that runs on this folder; nil if none runs, or if it ends before it has handed
    /// anything over.
    static func ask(_ folder: DataFolder, log: EventLog?) throws(OperationalError) -> InheritedResources? {
        // A server that is itself being taken over answers that it is busy, and ends soon.
        for _ in 0..<patience / 100 {
            guard let connection = try ControlConnection(to: folder) else { return nil }
            let inheritance = InheritedResources(connection)
            do {
                if try inheritance.receive() { return inheritance }
            } catch {
                log?.note(subject: "restart", message: "\(error.message); tried again")
            }
            usleep(100_000)
        }
        throw OperationalError(
            .failed, message: "the running server does not hand over: another restart does not end")
    }

    /// False if the other server is busy now.
    private func receive() throws(OperationalError) -> Bool {
        try connection.send("take-over 1")
        var replayLock: FileDescriptor?
        var replayLocks: FileDescriptor?
        while true {
            let (message, descriptor) = try connection.expect(within: InheritedResources.patience)
            switch (message, descriptor) {
            case ("listener", let descriptor?): listeners.append(descriptor)
            case ("admin-listener", let descriptor?): adminListeners.append(descriptor)
            case ("replay-file-lock", let descriptor?): replayLock = descriptor
            case ("replay-table-locks", let descriptor?): replayLocks = descriptor
            case ("login-limits", let descriptor?): limits = descriptor
            case (KeyedRequestStorage.logOffer, _?): hasRequestLog = true
            case (let text, nil) where text.hasPrefix(HandoverCoordinator.nodeOffer):
                node = String(text.dropFirst(HandoverCoordinator.nodeOffer.count))
            case ("end", nil):
                guard let replayLock, let replayLocks, !listeners.isEmpty, limits != nil else {
                    throw OperationalError(
                        .failed, message: "the running server did not hand over all that is needed")
                }
                replay = ReplayFileHandover(lockFile: replayLock, locks: replayLocks)
                return true
            case ("busy", nil): return false
            default:
                if message.hasPrefix("failed ") {
                    throw OperationalError(.failed, message: String(message.dropFirst(7)))
                }
                throw OperationalError(
                    .failed, message: "the running server hands over what this one does not know")
            }
        }
    }

    /// Throws unless the other server keeps keyed requests where a server over `location` does: until it has
    /// ended, both must find the copies of a request in one place.
    func requireKeyedRequests(over location: StoreLocation) throws(OperationalError) {
        guard hasRequestLog == location.isShared else { return }
        throw OperationalError(
            .failed,
            message: "the running server keeps keyed requests "
                + (hasRequestLog ? "in the data folder" : "in the database")
                + ", and this one would not: stop that server first, then start this one")
    }

    /// Tells the other server that this one accepts connections, and waits until the other stops accepting.
    /// Does nothing if the other has ended meanwhile.
    func confirm() {
        guard (try? connection.send("accepting")) != nil else { return }
        _ = try? connection.receive(within: 10_000)
    }
}

/// The sockets that a server listens on: opened, taken over from its predecessor, or passed by the service
/// manager. A socket that another process shares stays open when this process closes it. Safe to share:
/// values under their locks.
final class ListeningSockets: Sendable {
    private let clients: Locked<[FileDescriptor]>
    private let administration: Locked<[FileDescriptor]>

    /// Those of the predecessor if there is one, else those that were `passed`.
    init(_ inheritance: InheritedResources?, passed: PassedSockets.Checked = .init()) {
        clients = Locked(inheritance?.listeners ?? passed.clients)
        administration = Locked(inheritance?.adminListeners ?? passed.administration)
    }

    var listeners: [FileDescriptor] { clients.with { $0 } }
    var adminListeners: [FileDescriptor] { administration.with { $0 } }

    /// At least `count` sockets for clients, and their port. Keeps all sockets that were taken over for this
    /// address: a socket from which no worker accepts would keep its share of the connections waiting.
    func open(_ address: HostPort, atLeast count: Int) throws -> (sockets: [FileDescriptor], port: Int) {
        let opened = try ListeningSockets.opened(address, taken: listeners, atLeast: count)
        clients.with { $0 = opened }
        return (opened, SocketAddress.port(of: opened[0].number))
    }

    /// The socket for administrators.
    func openAdmin(_ address: HostPort) throws -> FileDescriptor {
        let opened = try ListeningSockets.opened(address, taken: adminListeners, atLeast: 1)
        administration.with { $0 = opened }
        return opened[0]
    }

    func close() {
        clients.with { $0 = [] }
        administration.with { $0 = [] }
    }

    private static func opened(
        _ address: HostPort, taken: [FileDescriptor], atLeast count: Int
    ) throws -> [FileDescriptor] {
        let wanted = try SocketAddress.resolve(host: address.host, port: Int(address.port))
        guard let first = taken.first, wanted.contains(where: { $0.isListened(by: first.number) }) else {
            return try wanted[0].listen(sockets: count).descriptors.map { FileDescriptor(owning: $0) }
        }
        var sockets = taken
        while sockets.count < count {
            // The kernel puts no socket beside one that another user has opened, as a service manager does:
            // several workers then accept from the same.
            let beside = try? SocketAddress.listen(beside: first.number)
            sockets.append(FileDescriptor(owning: try beside ?? first.copy()))
        }
        return sockets
    }
}

extension FileDescriptor {
    /// A duplicate that its receiver owns and closes. Source: fcntl(2), F_DUPFD_CLOEXEC.
    func copy() throws(OperationalError) -> Int32 {
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { throw OperationalError.system("a listening socket", code: errno) }
        return copy
    }
}
