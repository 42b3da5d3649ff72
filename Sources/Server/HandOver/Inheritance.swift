import CountersignAuthority
import CountersignGate
import CountersignWire
import Glibc

/// What a server takes over from the one that runs: its listening sockets, the replay file with its locks,
/// and the limits on logins. Source: docs/decisions/0034-restart.md.
final class Inheritance {
    /// Listening sockets, by the purpose that their setting has.
    var listeners: [FileDescriptor] = []
    var adminListeners: [FileDescriptor] = []
    var replay: ReplaySharing?
    var limits: FileDescriptor?
    let connection: ControlConnection

    private static let patience = 60_000

    private init(_ connection: ControlConnection) { self.connection = connection }

    /// Asks the server that runs on this folder; nil where none does, or where it ends before it has handed
    /// anything over.
    static func ask(_ folder: DataFolder, log: EventLog?) throws(Fault) -> Inheritance? {
        // A server that is itself being taken over says so, and soon is not any more.
        for _ in 0..<patience / 100 {
            guard let connection = try ControlConnection(to: folder) else { return nil }
            let inheritance = Inheritance(connection)
            do throws(Fault) {
                if try inheritance.receive() { return inheritance }
            } catch {
                log?.note("restart", "\(error.message); tried again")
            }
            usleep(100_000)
        }
        throw Fault(.failed, "the running server does not hand over: another restart does not end")
    }

    /// False where it has no time now.
    private func receive() throws(Fault) -> Bool {
        try connection.send("take-over 1")
        var replayLock: FileDescriptor?
        var replayLocks: FileDescriptor?
        while true {
            let (message, descriptor) = try connection.expect(within: Inheritance.patience)
            switch (message, descriptor) {
            case ("listener", let descriptor?): listeners.append(descriptor)
            case ("admin-listener", let descriptor?): adminListeners.append(descriptor)
            case ("replay-file-lock", let descriptor?): replayLock = descriptor
            case ("replay-table-locks", let descriptor?): replayLocks = descriptor
            case ("login-limits", let descriptor?): limits = descriptor
            case ("end", nil):
                guard let replayLock, let replayLocks, !listeners.isEmpty, limits != nil else {
                    throw Fault(.failed, "the running server did not hand over all that is needed")
                }
                replay = ReplaySharing(lockFile: replayLock, locks: replayLocks)
                return true
            case ("busy", nil): return false
            default:
                if message.hasPrefix("failed ") { throw Fault(.failed, String(message.dropFirst(7))) }
                throw Fault(.failed, "the running server hands over what this one does not know")
            }
        }
    }

    /// Tells the other server that this one accepts connections, and waits until that does not any more.
    /// Where it has ended meanwhile, so much the better.
    func confirm() {
        guard (try? connection.send("accepting")) != nil else { return }
        _ = try? connection.receive(within: 10_000)
    }
}
