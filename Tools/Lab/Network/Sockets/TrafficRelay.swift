import CountersignMemory
import Glibc

/// Handles connections to the public port: relays them to the server and to recorders, or passes them to the
/// interception.
final class TrafficRelay: Sendable {
    private let state = Locked(State())

    /// The interception that handles connections.
    enum Middle {
        case own(ManInTheMiddle)
        case mitmproxy(Mitmproxy)
    }

    private struct State {
        var server: UInt16?
        var recorders: [TrafficRecorder] = []
        var middle: Middle?
        var connections: UInt64 = 0
    }

    /// The server's port; nil until it is set.
    var server: UInt16? {
        get { state.with { $0.server } }
        set { state.with { $0.server = newValue } }
    }

    /// Nil where connections are relayed unchanged.
    var middle: Middle? {
        get { state.with { $0.middle } }
        set { state.with { $0.middle = newValue } }
    }

    func add(_ ear: TrafficRecorder) { state.with { $0.recorders.append(ear) } }

    func remove(_ ear: TrafficRecorder) { state.with { $0.recorders.removeAll { $0 === ear } } }

    /// Serves one connection, and closes it.
    func serve(_ descriptor: Int32) {
        let (middle, server, connection) = state.with { state in
            state.connections += 1
            return (state.middle, state.server, state.connections)
        }
        switch middle {
        case .own(let man): return man.serve(descriptor)
        case .mitmproxy(let program): return program.serve(descriptor)
        case nil: break
        }
        let client = RawConnection(descriptor)
        guard let server, let upstream = try? Socket.connect(to: "127.0.0.1", port: server) else { return }
        let link = RawConnection(upstream)
        ByteRelay(client: client.descriptor, server: link.descriptor) { [self] bytes, side in
            for ear in state.with({ $0.recorders }) { ear.record(bytes, from: side, on: connection) }
        }.run()
    }
}

/// Relays bytes between two sockets, and passes them to `observe`.
struct ByteRelay {
    let client: Int32
    let server: Int32
    /// Called before the bytes are forwarded: a client that has a response can rely on its being recorded.
    let observe: (_ bytes: [UInt8], _ side: TrafficRecorder.Side) -> Void

    /// Returns when the server or both have ended, or when nothing has arrived for a minute.
    func run() {
        var clientHasEnded = false
        while true {
            var both = [
                pollfd(fd: clientHasEnded ? -1 : client, events: Int16(POLLIN), revents: 0),
                pollfd(fd: server, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&both, 2, 60_000)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            if both[0].revents != 0, !pass(from: client, to: server, side: .client) {
                // The client may still wait for a response.
                clientHasEnded = true
                shutdown(server, Int32(SHUT_WR))
            }
            if both[1].revents != 0, !pass(from: server, to: client, side: .server) { return }
        }
    }

    /// False at the end of the stream.
    private func pass(from: Int32, to: Int32, side: TrafficRecorder.Side) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = read(from, &bytes, bytes.count)
        guard count > 0 else { return false }
        bytes.removeLast(bytes.count - count)
        observe(bytes, side)
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(to, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
